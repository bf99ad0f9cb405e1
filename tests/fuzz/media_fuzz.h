// Shared by the fuzz targets of media/.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "fuzz/check.h"
#include "media/media_kind.h"
#include "vitrove/audio.h"
#include "vitrove/error.h"
#include "vitrove/media.h"
#include "vitrove/video.h"

namespace vitrove::fuzz {

inline std::span<const std::byte> as_bytes(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Runs what decodes: it may only fail in ways that a client can cause, or for want of time, and
// leaves nothing behind.
template <typename Decode>
void run_or_refuse(Decode decode) {
  MemoryBudget budget(std::uint64_t{256} << 20);
  try {
    decode(budget);
  } catch (const Error& error) {
    const int status = http_status(error.code());
    check(status == 400 || status == 413 || status == 415 || status == 504,
          "only errors that a client can cause");
  }
  check(budget.used() == 0, "nothing is held at the end");
}

inline DecodeContext bounded(MemoryBudget& budget) {
  return {.budget = &budget,
          .deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5)};
}

inline void check_picture(const RgbImage& image) {
  check(image.width > 0 && image.height > 0, "a picture has pixels");
  check(image.pixels.size() == std::size_t{3} * image.width * image.height, "three bytes a pixel");
}

// Either a whole picture or an Error.
inline void decode_or_refuse(std::span<const std::byte> bytes, MediaFormat format) {
  if (sniff(bytes) != format) return;
  ImageLimits limits;
  limits.max_pixels = 1 << 20;
  limits.max_jpeg_scans = 16;
  run_or_refuse([&](MemoryBudget& budget) {
    const DecodedImage decoded = decode_image(bytes, limits, bounded(budget));
    check_picture(decoded.image);
    check(budget.used() == decoded.image.pixels.size(), "the lease is that of the pixels");
  });
}

// Either a whole clip or an Error.
inline void decode_clip_or_refuse(std::span<const std::byte> bytes) {
  if (!is_decodable(sniff(bytes), Modality::video)) return;
  check(MediaKind(bytes).own().has_value(), "what can be decoded is something");
  const VideoLimits limits{.max_frame_pixels = 1 << 18,
                           .max_frames = 16,
                           .max_source_frames = 4'000,
                           .max_seconds = 3600};
  const VideoSampling sampling{.max_frames = 8};
  run_or_refuse([&](MemoryBudget& budget) {
    const DecodedVideo decoded = decode_video(bytes, sampling, limits, bounded(budget));
    const VideoClip& clip = decoded.clip;
    check(!clip.frames.empty() && clip.frames.size() <= 8, "as many frames as were asked for");
    check(clip.frames.size() == clip.timestamps.size(), "a time a frame");
    for (const RgbImage& frame : clip.frames) check_picture(frame);
  });
}

// Either a whole sound or an Error.
inline void decode_sound_or_refuse(std::span<const std::byte> bytes) {
  if (!is_decodable(sniff(bytes), Modality::audio)) return;
  check(MediaKind(bytes).own().has_value(), "what can be decoded is something");
  run_or_refuse([&](MemoryBudget& budget) {
    const DecodedAudio decoded = decode_audio(bytes, 16'000, {.max_seconds = 600}, bounded(budget));
    check(!decoded.clip.samples.empty(), "a sound has samples");
    for (const float sample : decoded.clip.samples) check(sample == sample, "no NaN");
  });
}

}  // namespace vitrove::fuzz
