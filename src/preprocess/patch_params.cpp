#include "preprocess/patch_params.h"

#include <string>

#include <nlohmann/json.hpp>

#include "preprocess/video_params.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr std::int64_t most_pixels = std::int64_t{1} << 31;
constexpr std::int64_t largest_patch = 64;
constexpr std::int64_t largest_merge = 8;

std::uint64_t read_pixels(const std::string& name, const nlohmann::json& value) {
  return static_cast<std::uint64_t>(read_whole(name, value, 1, most_pixels));
}

// "shortest_edge" and "longest_edge" are numbers of pixels here, whatever they are called; the
// first configurations said "min_pixels" and "max_pixels".
void take_size(ParamTaker& taker, PatchParams& params) {
  const nlohmann::json size = taker.take("size");
  if (size.is_null()) return;
  const auto pixels = [&](const char* name, const char* older) {
    const char* const spelled = size.contains(name) ? name : older;
    if (!size.is_object() || !size.contains(spelled)) {
      refuse_param_type("size", R"({"shortest_edge", "longest_edge"}, in pixels of the area)");
    }
    return read_pixels("size." + std::string(spelled), size[spelled]);
  };
  params.min_pixels = pixels("shortest_edge", "min_pixels");
  params.max_pixels = pixels("longest_edge", "max_pixels");
}

WeightRounding read_rounding(const std::string& name, const nlohmann::json& value) {
  if (value == "pillow") return WeightRounding::pillow;
  if (value == "torchvision") return WeightRounding::torchvision;
  refuse_param_type(name, R"("pillow" or "torchvision")");
}

ClipSizes read_clip_sizes(const std::string& name, const nlohmann::json& value) {
  if (value == "transformers") return ClipSizes::transformers;
  if (value == "qwen_vl_utils") return ClipSizes::qwen_vl_utils;
  refuse_param_type(name, R"("qwen_vl_utils" or "transformers")");
}

// The families that sample by qwen-vl-utils are those whose sizes it decides, too.
void take_clip_sizes(ParamTaker& taker, PatchParams& params) {
  if (params.sampling.rule != SamplingRule::qwen_vl_utils) return;
  taker.take("size_rule", params.clip_sizes, read_clip_sizes);
  taker.take("total_pixels", params.total_pixels, read_pixels);
}

void take_sampling(ParamTaker& taker, VideoSampling& sampling) {
  take_video_sampling(taker.rest({"fps", "num_frames", "min_frames", "max_frames"}), sampling);
  bool ignored = true;  // frames are always sampled from files
  taker.take("do_sample_frames", ignored, read_bool);
}

}  // namespace

void apply_json(const nlohmann::json& object, ParamSource source, Modality modality,
                std::string_view family, PatchParams& params) {
  ParamTaker taker(object, source);
  taker.take("do_resize", params.do_resize, read_bool);
  // The pixels win over the size, as in the reference's constructors.
  take_size(taker, params);
  taker.take("min_pixels", params.min_pixels, read_pixels);
  taker.take("max_pixels", params.max_pixels, read_pixels);
  taker.take("resample", params.resample, read_resampling);
  taker.take("resize_rounding", params.rounding, read_rounding);
  take_normalization(taker, params.normalization);
  taker.take_fixed("patch_size", params.patch_size, 1, largest_patch);
  taker.take_fixed("temporal_patch_size", params.temporal_patch_size, 1, largest_merge);
  taker.take_fixed("merge_size", params.merge_size, 1, largest_merge);
  bool ignored = true;  // everything becomes RGB in any case
  taker.take("do_convert_rgb", ignored, read_bool);
  if (modality == Modality::video) {
    take_sampling(taker, params.sampling);
    take_clip_sizes(taker, params);
  } else {
    taker.take("jpeg_scaled_decode", params.jpeg_scaled_decode, read_bool);
  }
  taker.finish(family);
}

void check_params(const PatchParams& params) {
  if (params.min_pixels > params.max_pixels) refuse_params("min_pixels is larger than max_pixels");
  const bool is_smooth =
      params.resample == Resampling::bilinear || params.resample == Resampling::bicubic;
  if (params.rounding == WeightRounding::torchvision && !is_smooth) {
    refuse_params("resize_rounding torchvision goes with resample 2 (bilinear) and 3 (bicubic)");
  }
  check_finite(params.normalization);
}

ResolvedParams to_resolved(const PatchParams& params, Modality modality) {
  ResolvedParams result;
  auto& values = result.values;
  values["do_resize"] = params.do_resize;
  values["min_pixels"] = static_cast<std::int64_t>(params.min_pixels);
  values["max_pixels"] = static_cast<std::int64_t>(params.max_pixels);
  values["resample"] = static_cast<std::int64_t>(params.resample);
  values["resize_rounding"] =
      std::string(params.rounding == WeightRounding::pillow ? "pillow" : "torchvision");
  add_to_resolved(params.normalization, result);
  values["patch_size"] = std::int64_t{params.patch_size};
  values["temporal_patch_size"] = std::int64_t{params.temporal_patch_size};
  values["merge_size"] = std::int64_t{params.merge_size};
  if (modality == Modality::video) add_to_resolved(params.sampling, result);
  if (params.jpeg_scaled_decode) values["jpeg_scaled_decode"] = true;
  if (params.clip_sizes == ClipSizes::qwen_vl_utils) {
    values["size_rule"] = std::string("qwen_vl_utils");
    values["total_pixels"] = static_cast<std::int64_t>(params.total_pixels);
  }
  return result;
}

PatchParams patch_params_from(const ResolvedParams& resolved, Modality modality) {
  const ResolvedReader reader(resolved);
  PatchParams params;
  params.do_resize = reader.get<bool>("do_resize");
  params.min_pixels = static_cast<std::uint64_t>(reader.get<std::int64_t>("min_pixels"));
  params.max_pixels = static_cast<std::uint64_t>(reader.get<std::int64_t>("max_pixels"));
  params.resample = static_cast<Resampling>(reader.edge("resample"));
  params.rounding = reader.get<std::string>("resize_rounding") == "pillow"
                        ? WeightRounding::pillow
                        : WeightRounding::torchvision;
  params.normalization = normalization_from(reader);
  params.patch_size = reader.edge("patch_size");
  params.temporal_patch_size = reader.edge("temporal_patch_size");
  params.merge_size = reader.edge("merge_size");
  params.jpeg_scaled_decode = reader.has("jpeg_scaled_decode");
  if (modality == Modality::video) params.sampling = sampling_from_resolved(resolved);
  if (reader.has("size_rule")) {
    params.clip_sizes = ClipSizes::qwen_vl_utils;
    params.total_pixels = static_cast<std::uint64_t>(reader.get<std::int64_t>("total_pixels"));
  }
  return params;
}

}  // namespace vitrove
