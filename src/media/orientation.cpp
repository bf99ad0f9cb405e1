#include "media/orientation.h"

#include <algorithm>
#include <cstring>

#include "base/large_vector.h"

namespace vitrove {
namespace {

void flip_vertical(RgbImage& image) {
  for (std::size_t top = 0, bottom = image.height; top + 1 < bottom; ++top) {
    --bottom;
    std::swap_ranges(image.row(top), image.row(top) + image.row_bytes(), image.row(bottom));
  }
}

void flip_horizontal(RgbImage& image) {
  for (std::size_t y = 0; y < image.height; ++y) {
    std::uint8_t* left = image.row(y);
    std::uint8_t* right = left + image.row_bytes();
    while (right - left >= 6) {
      right -= 3;
      std::swap_ranges(left, left + 3, right);
      left += 3;
    }
  }
}

// Rows become columns; in tiles, so that both sides stay in cache.
RgbImage transpose(const RgbImage& image) {
  constexpr std::size_t tile = 32;
  RgbImage result{image.height, image.width, make_large_vector<std::uint8_t>(image.pixels.size())};
  for (std::size_t top = 0; top < image.height; top += tile) {
    const std::size_t bottom = std::min<std::size_t>(top + tile, image.height);
    for (std::size_t left = 0; left < image.width; left += tile) {
      const std::size_t right = std::min<std::size_t>(left + tile, image.width);
      for (std::size_t x = left; x < right; ++x) {
        std::uint8_t* to = result.row(x) + 3 * top;
        for (std::size_t y = top; y < bottom; ++y, to += 3) {
          std::memcpy(to, image.row(y) + 3 * x, 3);
        }
      }
    }
  }
  return result;
}

}  // namespace

RgbImage make_upright(RgbImage image, Orientation orientation) {
  if (swaps_sides(orientation)) image = transpose(image);
  switch (orientation) {
    case Orientation::upright:
    case Orientation::transpose:
      break;
    case Orientation::flip_horizontal:
    case Orientation::rotate_clockwise:
      flip_horizontal(image);
      break;
    case Orientation::flip_vertical:
    case Orientation::rotate_anticlockwise:
      flip_vertical(image);
      break;
    case Orientation::rotate_180:
    case Orientation::transverse:
      flip_horizontal(image);
      flip_vertical(image);
      break;
  }
  return image;
}

}  // namespace vitrove
