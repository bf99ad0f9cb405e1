// The families of image processors that we know.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "preprocess/image_params.h"

namespace vitrove {

std::span<const ImageFamily> image_families();

// By the name in a preprocessor_config.json; null when unknown.
const ImageFamily* find_image_family(std::string_view type);

// "CLIPImageProcessor, ...", for error messages.
std::string known_image_processors();

}  // namespace vitrove
