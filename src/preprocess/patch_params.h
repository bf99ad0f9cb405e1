// The parameters of the Qwen-VL families, typed, and their two outer forms: JSON and
// ResolvedParams.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "preprocess/json_params.h"
#include "preprocess/pixel_table.h"
#include "preprocess/resize.h"
#include "vitrove/video.h"

namespace vitrove {

// How clips get their sizes, where each frame counts for itself.
enum class ClipSizes : std::uint8_t {
  transformers,   // min_pixels and max_pixels alone, as the video processor does by itself
  qwen_vl_utils,  // and before them the bounds of qwen-vl-utils, which the model cards tell to use
};

struct PatchParams {
  bool do_resize = true;
  // Of a picture or a frame after resizing; Qwen3-VL counts all frames of a clip together.
  std::uint64_t min_pixels = 0;
  std::uint64_t max_pixels = 0;
  Resampling resample = Resampling::bicubic;
  WeightRounding rounding = WeightRounding::pillow;
  Normalization normalization;
  std::uint32_t patch_size = 14;
  std::uint32_t temporal_patch_size = 2;
  std::uint32_t merge_size = 2;
  bool jpeg_scaled_decode = false;  // pictures only
  VideoSampling sampling;           // clips only
  ClipSizes clip_sizes = ClipSizes::transformers;
  // With qwen_vl_utils: half of what all frames of a clip may have, since two make one token.
  std::uint64_t total_pixels = 0;

  ResizeRule rule() const { return {resample, rounding}; }
};

struct PatchFamily {
  std::string_view name;
  std::uint32_t version;
  bool counts_all_frames;  // in min_pixels and max_pixels of a clip
  PatchParams image;
  PatchParams video;
};

// Replaces what `object` names. Throws Error{invalid_argument} naming parameters that are unknown,
// of the wrong type or out of range.
void apply_json(const nlohmann::json& object, ParamSource source, Modality modality,
                std::string_view family, PatchParams& params);

// Throws Error{invalid_argument} for what nothing could be processed with.
void check_params(const PatchParams& params);

ResolvedParams to_resolved(const PatchParams& params, Modality modality);
PatchParams patch_params_from(const ResolvedParams& resolved, Modality modality);

}  // namespace vitrove
