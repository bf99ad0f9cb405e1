// Defaults are those of the Hugging Face processors: what holds where the files are silent. Raise a
// family's version whenever the bytes of its tensors may change.
#include "preprocess/patch_families.h"

namespace vitrove {
namespace {

constexpr std::array openai_mean{0.48145466, 0.4578275, 0.40821073};
constexpr std::array openai_std{0.26862954, 0.26130258, 0.27577711};
constexpr std::array middle{0.5, 0.5, 0.5};

// The class of all Qwen-VL models' pictures.
PatchParams picture_defaults() {
  PatchParams params;
  params.min_pixels = 56 * 56;
  params.max_pixels = 28 * 28 * 1280;
  params.normalization.image_mean = openai_mean;
  params.normalization.image_std = openai_std;
  return params;
}

PatchParams qwen2_clip_defaults() {
  PatchParams params = picture_defaults();
  params.min_pixels = 128 * 28 * 28;
  params.max_pixels = 768 * 28 * 28;
  params.rounding = WeightRounding::torchvision;
  params.clip_sizes = ClipSizes::qwen_vl_utils;
  params.total_pixels = 115'200 * 28 * 28;  // nine tenths of a context of 128,000 tokens
  return params;
}

PatchParams qwen3_clip_defaults() {
  PatchParams params = qwen2_clip_defaults();
  params.min_pixels = 128 * 32 * 32;
  params.max_pixels = 768 * 32 * 32;
  params.patch_size = 16;
  params.normalization.image_mean = middle;
  params.normalization.image_std = middle;
  params.sampling.rule = SamplingRule::qwen3_vl;
  params.clip_sizes = ClipSizes::transformers;
  params.total_pixels = 0;
  return params;
}

std::string_view without_fast(std::string_view name) {
  if (name.ends_with("Fast")) name.remove_suffix(4);
  return name;
}

}  // namespace

std::optional<PatchFamily> find_patch_family(const ProcessorNames& names) {
  const std::string_view image = without_fast(names.image);
  const std::string_view video = without_fast(names.video);
  const bool is_qwen3 = video == "Qwen3VLVideoProcessor" || names.processor == "Qwen3VLProcessor";
  const bool is_qwen2 = video == "Qwen2VLVideoProcessor" || video == "Qwen2_5_VLVideoProcessor";
  const bool has_patches = image == "Qwen2VLImageProcessor" || image == "Qwen2_5_VLImageProcessor";
  if (!has_patches && !(image.empty() && (is_qwen2 || is_qwen3))) return std::nullopt;
  if (is_qwen3) {
    return PatchFamily{"qwen3_vl", 1, true, picture_defaults(), qwen3_clip_defaults()};
  }
  return PatchFamily{"qwen2_vl", 1, false, picture_defaults(), qwen2_clip_defaults()};
}

std::string_view known_patch_processors() {
  return "Qwen2VLImageProcessor, Qwen2VLVideoProcessor, Qwen3VLVideoProcessor";
}

}  // namespace vitrove
