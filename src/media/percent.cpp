#include "media/percent.h"

#include "media/ascii.h"

namespace vitrove {

std::optional<std::string> percent_decode(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      result.push_back(text[at]);
      continue;
    }
    if (text.size() - at < 3) return std::nullopt;
    const int high = hex_value(text[at + 1]);
    const int low = hex_value(text[at + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    result.push_back(static_cast<char>(high * 16 + low));
    at += 2;
  }
  return result;
}

}  // namespace vitrove
