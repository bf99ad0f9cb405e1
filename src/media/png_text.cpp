#include "media/png_text.h"

#include <algorithm>
#include <cctype>
#include <new>

#include <zlib.h>

#include "media/ascii.h"

namespace vitrove {
namespace {

constexpr std::size_t most_text_bytes = std::size_t{256} << 10;

// The part up to the next zero, which is taken away with it.
std::string_view take_field(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\0'), rest.size());
  const std::string_view field = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return field;
}

std::string inflate_start(std::string_view packed) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw std::bad_alloc();
  std::string text(most_text_bytes, '\0');
  // zlib's own type is not const, but it does not write there.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  inflate(&stream, Z_FINISH);  // whatever it says: there is as much as there is
  text.resize(text.size() - stream.avail_out);
  inflateEnd(&stream);
  return text;
}

}  // namespace

PngText::PngText(std::string_view type, std::span<const std::byte> data) {
  const bool is_international = type == "iTXt";
  if (type != "tEXt" && type != "zTXt" && !is_international) return;
  std::string_view rest(reinterpret_cast<const char*>(data.data()), data.size());
  keyword_ = take_field(rest);
  is_compressed_ = type == "zTXt" || (is_international && rest.starts_with('\1'));
  const std::size_t flags = is_international ? 2 : is_compressed_ ? 1 : 0;
  rest.remove_prefix(std::min(flags, rest.size()));
  if (is_international) {
    take_field(rest);  // the language
    take_field(rest);  // the keyword in it
  }
  content_ = rest;
}

std::string PngText::read() const {
  if (is_compressed_) return inflate_start(content_);
  return std::string(content_.substr(0, most_text_bytes));
}

std::vector<std::byte> raw_profile(std::string_view text) {
  constexpr int head_lines = 3;
  for (int line = 0; line < head_lines; ++line) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) return {};
    text.remove_prefix(end + 1);
  }
  std::vector<std::byte> profile;
  int upper = -1;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) continue;
    const int digit = hex_value(c);
    if (digit < 0) break;
    if (upper >= 0) profile.push_back(static_cast<std::byte>(upper << 4 | digit));
    upper = upper < 0 ? digit : -1;
  }
  return profile;
}

}  // namespace vitrove
