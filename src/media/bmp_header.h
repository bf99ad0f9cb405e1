// The header of a BMP file: sizes, kind of pixels, colour masks, palette.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vitrove {

enum class BmpPixels : std::uint8_t { indexed, masked, bgr24, run_length };

// Where a channel's bits are in a pixel of 16 or 32 bits.
struct BmpMask {
  std::uint32_t bits = 0;
  unsigned shift = 0;
  std::uint32_t most = 0;  // the value of all bits set; 0: there is no such channel

  static BmpMask of(std::uint32_t bits);
  // Scaled to 8 bits, rounded down as Pillow has it.
  std::uint8_t value(std::uint32_t pixel) const {
    return static_cast<std::uint8_t>(std::uint64_t{(pixel & bits) >> shift} * 255 / most);
  }
};

struct BmpHeader {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  bool is_top_down = false;
  unsigned bits = 0;  // a pixel
  BmpPixels kind = BmpPixels::indexed;
  std::array<BmpMask, 4> masks{};                    // red, green, blue, alpha
  std::vector<std::array<std::uint8_t, 3>> palette;  // red, green, blue
  std::span<const std::byte> data;                   // from the first pixel on

  std::size_t row_bytes() const { return (std::uint64_t{width} * bits + 31) / 32 * 4; }
};

// Throws Error: damaged, or a kind that nobody writes (embedded JPEG and PNG, 64 bits).
BmpHeader read_bmp_header(std::span<const std::byte> file);

}  // namespace vitrove
