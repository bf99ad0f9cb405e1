// How much smaller a JPEG may be decoded (jpeg_scaled_decode) so that only its pixels change.
#pragma once

#include <array>
#include <cstdint>

#include "preprocess/resize.h"

namespace vitrove {

// `place` tells what becomes of a picture of a size: a value with `resized`, comparable. The
// largest of libjpeg's reductions that leaves that the same, and twice the size that is resized to.
template <typename Place>
std::uint32_t largest_reduction(const Size& picture, const Place& place) {
  const auto wanted = place(picture);
  for (const std::uint32_t reduction : {8u, 4u, 2u}) {
    const Size reduced{(picture.width + reduction - 1) / reduction,
                       (picture.height + reduction - 1) / reduction};
    const bool is_large_enough =
        reduced.width / 2 >= wanted.resized.width && reduced.height / 2 >= wanted.resized.height;
    if (is_large_enough && place(reduced) == wanted) return reduction;
  }
  return 1;
}

}  // namespace vitrove
