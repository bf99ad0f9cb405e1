// The committed clips and sounds, and what they hold (tests/data/make_clip_fixtures.py).
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>
#include <vector>

#include "support.h"
#include "vitrove/audio.h"
#include "vitrove/video.h"

namespace vitrove::test {

inline Bytes clip_file(std::string_view name) {
  return read_file(source_dir() / "tests" / "data" / "clips" / name);
}

constexpr std::uint32_t clip_frames = 12;
constexpr double clip_fps = 10;
constexpr double sound_seconds = 0.6;

inline std::array<int, 3> frame_color(int frame) {
  return {20 + 18 * frame, 230 - 17 * frame, (60 * frame) % 200 + 20};
}

inline VideoSampling all_frames() { return {.num_frames = clip_frames}; }

inline DecodedVideo decode_clip(std::string_view name, const VideoSampling& sampling = {},
                                const VideoLimits& limits = {}) {
  return decode_video(clip_file(name), sampling, limits);
}

inline DecodedAudio decode_sound(std::string_view name, std::uint32_t rate = 16'000,
                                 const AudioLimits& limits = {}) {
  return decode_audio(clip_file(name), rate, limits);
}

inline Failure clip_failure(std::span<const std::byte> bytes, const VideoLimits& limits = {},
                            const VideoSampling& sampling = {}) {
  return failure_of([&] { decode_video(bytes, sampling, limits); });
}

inline Failure sound_failure(std::span<const std::byte> bytes, const AudioLimits& limits = {}) {
  return failure_of([&] { decode_audio(bytes, 16'000, limits); });
}

// The amplitude of one frequency in the middle of a sound.
inline double amplitude(const AudioClip& clip, double frequency) {
  const std::size_t margin = clip.samples.size() / 10;
  double sine = 0;
  double cosine = 0;
  for (std::size_t i = margin; i < clip.samples.size() - margin; ++i) {
    const double angle = 2 * std::numbers::pi * frequency * static_cast<double>(i) / clip.rate;
    sine += double{clip.samples[i]} * std::sin(angle);
    cosine += double{clip.samples[i]} * std::cos(angle);
  }
  const auto count = static_cast<double>(clip.samples.size() - 2 * margin);
  return 2 * std::hypot(sine, cosine) / count;
}

}  // namespace vitrove::test
