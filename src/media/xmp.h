// The one thing we want from XMP: which way is up.
#pragma once

#include <optional>
#include <string_view>

#include "media/exif.h"

namespace vitrove {

// By the first tiff:Orientation of a packet, as an attribute or an element, found as Pillow finds
// it and without parsing any XML. Nothing when there is none; a value out of range is `upright`.
std::optional<Orientation> xmp_orientation(std::string_view packet);

}  // namespace vitrove
