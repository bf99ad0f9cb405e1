// The Qwen-VL families.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "preprocess/patch_params.h"

namespace vitrove {

// What the configuration files of a model call their processors; empty where they do not say.
struct ProcessorNames {
  std::string image;      // image_processor_type
  std::string video;      // video_processor_type
  std::string processor;  // processor_class
};

// With the defaults of its classes; nothing when the names are of another family.
std::optional<PatchFamily> find_patch_family(const ProcessorNames& names);

// "Qwen2VLImageProcessor, ...", for error messages.
std::string_view known_patch_processors();

}  // namespace vitrove
