// Transparency on white: one arithmetic for every form in which files express it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vitrove {

// round((color * alpha + 255 * (255 - alpha)) / 255), exact for all 8-bit values.
constexpr std::uint8_t composite_on_white(std::uint8_t color, std::uint8_t alpha) {
  const unsigned sum = unsigned{color} * alpha + 255u * (255u - alpha) + 128u;
  return static_cast<std::uint8_t>((sum + (sum >> 8)) >> 8);
}

// `pixels` of RGBA at `from` to RGB at `to`; `to` may be `from`.
inline void composite_row(const std::uint8_t* from, std::uint8_t* to, std::size_t pixels) {
  for (std::size_t i = 0; i < pixels; ++i, from += 4, to += 3) {
    const std::uint8_t alpha = from[3];
    to[0] = composite_on_white(from[0], alpha);
    to[1] = composite_on_white(from[1], alpha);
    to[2] = composite_on_white(from[2], alpha);
  }
}

}  // namespace vitrove
