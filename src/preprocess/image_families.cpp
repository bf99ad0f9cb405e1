// Defaults are those of the Hugging Face processors: what holds where a preprocessor_config.json is
// silent. Raise a family's version whenever the bytes of its tensors may change; the golden tensors
// in tests/unit/preprocess hold us to that.
#include "preprocess/image_families.h"

#include <algorithm>
#include <array>

namespace vitrove {
namespace {

constexpr std::array clip_mean{0.48145466, 0.4578275, 0.40821073};
constexpr std::array clip_std{0.26862954, 0.26130258, 0.27577711};
constexpr std::array half{0.5, 0.5, 0.5};

constexpr std::array families{
    ImageFamily{
        .name = "clip",
        .types = {"CLIPImageProcessor", "CLIPFeatureExtractor"},
        .version = 1,
        .size_rule = SizeRule::shortest_or_exact,
        .has_crop = true,
        .has_crop_pct = false,
        .has_classifier_top = false,
        .defaults = {.size = shortest(224),
                     .do_center_crop = true,
                     .crop_size = square(224),
                     .normalization = {.image_mean = clip_mean, .image_std = clip_std}},
    },
    ImageFamily{
        .name = "siglip",
        .types = {"SiglipImageProcessor"},
        .version = 1,
        .size_rule = SizeRule::exact,
        .has_crop = false,
        .has_crop_pct = false,
        .has_classifier_top = false,
        .defaults = {.size = square(224), .normalization = {.image_mean = half, .image_std = half}},
    },
    ImageFamily{
        .name = "vit",
        .types = {"ViTImageProcessor", "ViTFeatureExtractor"},
        .version = 1,
        .size_rule = SizeRule::exact,
        .has_crop = false,
        .has_crop_pct = false,
        .has_classifier_top = false,
        .defaults = {.size = square(224),
                     .resample = Resampling::bilinear,
                     .normalization = {.image_mean = half, .image_std = half}},
    },
    ImageFamily{
        .name = "deit",
        .types = {"DeiTImageProcessor", "DeiTFeatureExtractor"},
        .version = 1,
        .size_rule = SizeRule::exact,
        .has_crop = true,
        .has_crop_pct = false,
        .has_classifier_top = false,
        .defaults = {.size = square(256),
                     .do_center_crop = true,
                     .crop_size = square(224),
                     .normalization = {.image_mean = half, .image_std = half}},
    },
    ImageFamily{
        .name = "bit",
        .types = {"BitImageProcessor"},
        .version = 1,
        .size_rule = SizeRule::shortest_or_exact,
        .has_crop = true,
        .has_crop_pct = false,
        .has_classifier_top = false,
        .defaults = {.size = shortest(224),
                     .do_center_crop = true,
                     .crop_size = square(224),
                     .normalization = {.image_mean = clip_mean, .image_std = clip_std}},
    },
    ImageFamily{
        .name = "convnext",
        .types = {"ConvNextImageProcessor", "ConvNextFeatureExtractor"},
        .version = 1,
        .size_rule = SizeRule::shortest_only,
        .has_crop = false,
        .has_crop_pct = true,
        .has_classifier_top = false,
        .defaults = {.size = shortest(384),
                     .resample = Resampling::bilinear,
                     .normalization = {.image_mean = half, .image_std = half}},
    },
    ImageFamily{
        .name = "efficientnet",
        .types = {"EfficientNetImageProcessor"},
        .version = 1,
        .size_rule = SizeRule::exact,
        .has_crop = true,
        .has_crop_pct = false,
        .has_classifier_top = true,
        .defaults = {.size = square(346),
                     .resample = Resampling::nearest,
                     .crop_size = square(289),
                     .normalization = {.image_mean = half, .image_std = half, .include_top = true}},
    },
};

}  // namespace

std::span<const ImageFamily> image_families() { return families; }

const ImageFamily* find_image_family(std::string_view type) {
  if (type.ends_with("Fast")) type.remove_suffix(4);
  if (type.empty()) return nullptr;
  const auto has_type = [&](const ImageFamily& family) {
    return std::ranges::find(family.types, type) != family.types.end();
  };
  const auto found = std::ranges::find_if(families, has_type);
  return found != families.end() ? &*found : nullptr;
}

std::string known_image_processors() {
  std::string result;
  for (const ImageFamily& family : families) {
    result += (result.empty() ? "" : ", ") + std::string(family.types.front());
  }
  return result;
}

}  // namespace vitrove
