// What a HEIC or AVIF file makes its decoder do, told before it is opened.
//
// libheif checks the size that the container gives. The streams inside may say otherwise, and a
// picture of tiles may name one tile a thousand times. So the items are looked through first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vitrove {

struct HeifClaims {
  std::uint64_t largest_pixels = 0;  // of one coded picture
  std::uint64_t work_pixels = 0;     // all that is decoded for the costliest item
  std::uint64_t item_bytes = 0;      // of all items together
};

HeifClaims heif_claims(std::span<const std::byte> file);

}  // namespace vitrove
