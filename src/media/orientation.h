// Turning pictures upright.
#pragma once

#include "media/exif.h"
#include "vitrove/media.h"

namespace vitrove {

// A second picture of the same size is needed unless the orientation is a flip or half a turn.
constexpr bool needs_second_buffer(Orientation orientation) { return swaps_sides(orientation); }

RgbImage make_upright(RgbImage image, Orientation orientation);

}  // namespace vitrove
