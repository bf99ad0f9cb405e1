// The one thing we want from EXIF: which way is up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace vitrove {

// The eight ways a picture can lie, with the numbers of EXIF tag 0x0112: what the first row and the
// first column of the stored pixels are in the upright picture.
enum class Orientation : std::uint8_t {
  upright = 1,           // top, left
  flip_horizontal,       // top, right
  rotate_180,            // bottom, right
  flip_vertical,         // bottom, left
  transpose,             // left, top
  rotate_clockwise,      // right, top: the stored picture has to be turned clockwise
  transverse,            // right, bottom
  rotate_anticlockwise,  // left, bottom
};

// Width and height change places.
constexpr bool swaps_sides(Orientation orientation) {
  return orientation >= Orientation::transpose;
}

// `block` is a TIFF structure, with or without "Exif\0\0" before it. Nothing when it has no such
// tag or is malformed; a value out of range is `upright`. Nothing outside the block is ever read.
std::optional<Orientation> exif_orientation(std::span<const std::byte> block);

}  // namespace vitrove
