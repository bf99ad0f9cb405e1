#include "media/frame_sampling.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "vitrove/video.h"

namespace vitrove {
namespace {

constexpr std::uint64_t factor = 2;

std::uint64_t round_down(double value) {
  return static_cast<std::uint64_t>(std::floor(value / factor)) * factor;
}

// Halves to even, as Python rounds.
std::uint64_t round_nearest(double value) {
  return static_cast<std::uint64_t>(std::nearbyint(value / factor)) * factor;
}

std::uint64_t round_up(double value) {
  return static_cast<std::uint64_t>(std::ceil(value / factor)) * factor;
}

std::uint64_t count_by_pairs(std::uint64_t total, double rate, const VideoSampling& sampling) {
  if (sampling.num_frames) {
    const std::uint64_t wanted = round_nearest(*sampling.num_frames);
    if (wanted >= factor && wanted <= total) return wanted;
    throw Error(ErrorCode::invalid_argument,
                "num_frames must be from 2 to the " + std::to_string(total) + " of the video");
  }
  const auto least = static_cast<double>(round_up(sampling.min_frames));
  const auto most = static_cast<double>(round_down(sampling.max_frames));
  const auto all = static_cast<double>(total);
  const double by_rate = rate > 0 ? all / rate * sampling.fps : all;
  return std::max(round_down(std::min({std::max(by_rate, least), most, all})), factor);
}

// PyTorch's linspace: float32, counted from the nearer end.
std::uint64_t place_in_float(std::uint64_t nth, std::uint64_t count, std::uint64_t total) {
  const auto end = static_cast<float>(total - 1);
  const float step = end / static_cast<float>(count - 1);
  const float place = nth < count / 2 ? step * static_cast<float>(nth)
                                      : end - step * static_cast<float>(count - 1 - nth);
  return std::min(static_cast<std::uint64_t>(std::nearbyint(place)), total - 1);
}

// May be more than there are, as in the reference.
std::uint64_t count_one_by_one(std::uint64_t total, double rate, const VideoSampling& sampling) {
  if (sampling.num_frames) return *sampling.num_frames;
  constexpr double rate_unless_told = 24;
  const auto all = static_cast<double>(total);
  const auto least = static_cast<double>(sampling.min_frames);
  const auto most = static_cast<double>(sampling.max_frames);
  const double by_rate = std::floor(all / (rate > 0 ? rate : rate_unless_told) * sampling.fps);
  return static_cast<std::uint64_t>(std::min({std::max(by_rate, least), most, all}));
}

// numpy's linspace: float64, whose last place is the end itself.
std::uint64_t place_in_double(std::uint64_t nth, std::uint64_t count, std::uint64_t total) {
  if (count == 1) return 0;
  if (nth == count - 1) return total - 1;
  const double step = static_cast<double>(total - 1) / static_cast<double>(count - 1);
  return static_cast<std::uint64_t>(std::nearbyint(static_cast<double>(nth) * step));
}

}  // namespace

std::vector<std::uint64_t> sample_frames(std::uint64_t total, double rate,
                                         const VideoSampling& sampling) {
  if (total == 0) throw Error(ErrorCode::invalid_argument, "the video has no frames");
  const bool by_pairs = sampling.rule == SamplingRule::qwen_vl_utils;
  if (by_pairs && total == 1) return {0};
  const std::uint64_t count =
      by_pairs ? count_by_pairs(total, rate, sampling) : count_one_by_one(total, rate, sampling);
  if (count == 0) throw Error(ErrorCode::invalid_argument, "no frames of the video are asked for");
  const auto place_of = by_pairs ? place_in_float : place_in_double;
  std::vector<std::uint64_t> places;
  places.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) places.push_back(place_of(i, count, total));
  return places;
}

FrameSurvey survey_frames(FfmpegSource& source, std::uint64_t max_frames) {
  FrameSurvey survey;
  std::int64_t first = INT64_MAX;
  std::int64_t last = INT64_MIN;
  std::int64_t last_duration = 0;
  const FfmpegPacket packet = make_packet();
  bool is_first = true;
  while (source.read(*packet)) {
    const bool is_key_frame = (packet->flags & AV_PKT_FLAG_KEY) != 0;
    if (std::exchange(is_first, false)) survey.begins_with_key_frame = is_key_frame;
    if ((packet->flags & AV_PKT_FLAG_DISCARD) != 0) continue;  // cut off by an edit list
    survey.largest_packet =
        std::max(survey.largest_packet, static_cast<std::uint64_t>(packet->size));
    if (++survey.frames > max_frames) {
      throw Error(ErrorCode::too_large,
                  "the video exceeds the limit of " + std::to_string(max_frames) + " frames");
    }
    const std::int64_t time = packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts;
    if (time == AV_NOPTS_VALUE) continue;
    first = std::min(first, time);
    if (time >= last) last_duration = packet->duration;
    last = std::max(last, time);
  }
  if (first > last) return survey;
  const auto frames = static_cast<double>(survey.frames);
  // In ticks as far as possible: a second too few by rounding would cost two frames.
  const double ticks = static_cast<double>(last) - static_cast<double>(first);
  survey.seconds = last_duration > 0 ? source.seconds_of(ticks + static_cast<double>(last_duration))
                                     : source.seconds_of(ticks) * frames / (frames - 1);
  if (survey.frames == 1 && last_duration <= 0) survey.seconds = 0;
  survey.rate = survey.seconds > 0 ? frames / survey.seconds : 0;
  const double declared = source.declared_rate();
  if (std::abs(declared - survey.rate) < 0.01 * declared) survey.rate = declared;
  return survey;
}

}  // namespace vitrove
