// Names of backends, which are URL schemes and parts of plugin file names.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace vitrove {

inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// Lower-case letters, digits, "+", "-", ".", "_", a letter first.
inline bool is_store_name(std::string_view text) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_other = [](char c) {
    return (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.' || c == '_';
  };
  return !text.empty() && text.size() <= 64 && is_letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || is_other(c); });
}

}  // namespace vitrove
