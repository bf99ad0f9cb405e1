// Letters and digits of protocols: the locale has no say.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace vitrove {

// -1 for what is no hexadecimal digit.
constexpr int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr char ascii_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

inline std::string ascii_lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) { return ascii_lower(c); });
  return result;
}

constexpr bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, {}, [](char c) { return ascii_lower(c); }, [](char c) { return ascii_lower(c); });
}

constexpr bool starts_ignoring_case(std::string_view text, std::string_view start) {
  return text.size() >= start.size() && equals_ignoring_case(text.substr(0, start.size()), start);
}

}  // namespace vitrove
