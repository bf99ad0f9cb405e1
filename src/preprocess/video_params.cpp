#include "preprocess/video_params.h"

#include <cmath>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "preprocess/json_params.h"

namespace vitrove {
namespace {

using nlohmann::json;

constexpr std::int64_t most_frames = 1'000'000;
constexpr double highest_fps = 1'000;

// Said only where it is not what most families do.
constexpr const char* rule_name = "frame_sampling";
constexpr const char* qwen3_rule = "qwen3_vl";

// Nothing for what is not there or null.
json take_out(json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return nullptr;
  json value = std::move(*found);
  object.erase(found);
  return value;
}

std::optional<std::uint32_t> take_frames(json& object, const char* name, std::int64_t least) {
  const json value = take_out(object, name);
  if (value.is_null()) return std::nullopt;
  return static_cast<std::uint32_t>(read_whole(name, value, least, most_frames));
}

std::optional<double> take_fps(json& object) {
  const json value = take_out(object, "fps");
  if (value.is_null()) return std::nullopt;
  const double fps = value.is_number() ? value.get<double>() : 0;
  if (std::isfinite(fps) && fps > 0 && fps <= highest_fps) return fps;
  refuse_param_type("fps", "a number above 0, and at most 1000");
}

}  // namespace

void take_video_sampling(json& object, VideoSampling& sampling) {
  const auto fps = take_fps(object);
  const auto least = take_frames(object, "min_frames", 1);
  const auto most = take_frames(object, "max_frames", 2);
  const auto count = take_frames(object, "num_frames", 2);
  if (count && (fps || least || most)) {
    refuse_params("num_frames stands alone: without fps, min_frames and max_frames");
  }
  if (count) sampling.num_frames = count;
  if (fps || least || most) sampling.num_frames.reset();
  sampling.fps = fps.value_or(sampling.fps);
  sampling.min_frames = least.value_or(sampling.min_frames);
  sampling.max_frames = most.value_or(sampling.max_frames);
  if (sampling.min_frames > sampling.max_frames)
    refuse_params("min_frames is larger than max_frames");
}

void add_to_resolved(const VideoSampling& sampling, ResolvedParams& resolved) {
  if (sampling.rule == SamplingRule::qwen3_vl) resolved.values[rule_name] = std::string(qwen3_rule);
  if (sampling.num_frames) {
    resolved.values["num_frames"] = std::int64_t{*sampling.num_frames};
    return;
  }
  resolved.values["fps"] = sampling.fps;
  resolved.values["min_frames"] = std::int64_t{sampling.min_frames};
  resolved.values["max_frames"] = std::int64_t{sampling.max_frames};
}

VideoSampling sampling_from_resolved(const ResolvedParams& resolved) {
  VideoSampling sampling;
  if (resolved.values.contains(rule_name)) sampling.rule = SamplingRule::qwen3_vl;
  const auto frames = [&](const char* name) {
    return static_cast<std::uint32_t>(std::get<std::int64_t>(resolved.values.at(name)));
  };
  if (resolved.values.contains("num_frames")) {
    sampling.num_frames = frames("num_frames");
    return sampling;
  }
  sampling.fps = std::get<double>(resolved.values.at("fps"));
  sampling.min_frames = frames("min_frames");
  sampling.max_frames = frames("max_frames");
  return sampling;
}

}  // namespace vitrove
