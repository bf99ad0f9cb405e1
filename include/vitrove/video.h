// Video: from the bytes of a file to a few upright RGB frames and their times.
//
// Containers are MP4, QuickTime, WebM, Matroska, AVI and GIF; codecs H.264, HEVC, AV1, VP8, VP9,
// MPEG-4, MPEG-1 and -2, Motion JPEG, ProRes, PNG, uncompressed video. All is done by FFmpeg's
// libraries on the bytes in memory: nothing in a file can make them open another file or an
// address, and one thread decodes.
//
// Frames are sampled once, as the model's reference does. With `total` frames in the file, in the
// order in which they are shown, and `rate` frames a second, SamplingRule::qwen_vl_utils (that of
// Qwen2-VL's own utilities, FRAME_FACTOR 2) takes:
//   wanted = num_frames rounded to a multiple of 2 when given, else
//            total / rate * fps, held between min_frames (rounded up to a multiple of 2) and
//            max_frames (rounded down to one), at most total, rounded down to a multiple of 2
//   taken  = round(linspace(0, total - 1, wanted)) in float32, halves to even
// and SamplingRule::qwen3_vl (that of Qwen3VLVideoProcessor) without any multiples of 2:
//   wanted = num_frames when given (of few frames some are taken twice), else total / rate * fps
//            rounded down, held between min_frames and max_frames, at most total
//   taken  = the same in float64
// A file of one frame gives that frame. `rate` is what the container says or, where that is missing
// or off by 1 %, total over the seconds. A file with a variable rate is sampled by frames and not
// by time, as there; timestamps are those of the very frames, from the first frame of the file on.
//
// Turns by quarters that a phone writes beside the frames are applied. Pixels are 8-bit RGB by the
// colour matrix and range that the stream names (BT.601, limited range, where it names none);
// transparency is composited on white as in media.h. Pixel aspect ratios and interlacing are
// ignored. Of several video streams FFmpeg's choice of the best one is taken.
//
// A stream that is cut, or in which the decoder finds an error, is damaged as a whole (B13): what a
// decoder makes of the frames after a lost one is a guess.
//
// Limits are checked before memory is taken; errors are those of media.h. Pure functions,
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vitrove/media.h"

namespace vitrove {

enum class SamplingRule : std::uint8_t { qwen_vl_utils, qwen3_vl };

struct VideoSampling {
  SamplingRule rule = SamplingRule::qwen_vl_utils;
  double fps = 2.0;
  std::uint32_t min_frames = 4;
  std::uint32_t max_frames = 768;
  std::optional<std::uint32_t> num_frames;  // instead of all the others
  bool operator==(const VideoSampling&) const = default;
};

// The frames to take, ascending. Throws Error{invalid_argument} when there are none, and by
// qwen_vl_utils when num_frames asks for more than there are.
std::vector<std::uint64_t> sample_frames(std::uint64_t total, double rate,
                                         const VideoSampling& sampling);

struct VideoLimits {
  std::uint64_t max_item_bytes = std::uint64_t{64} << 20;
  // Width times height of a frame: 4096 x 2304.
  std::uint64_t max_frame_pixels = 9'437'184;
  // Frames taken from one file, and frames that there are to choose from.
  std::uint32_t max_frames = 768;
  std::uint64_t max_source_frames = 1'000'000;
  double max_seconds = 3600.0;
};

struct ClipTimes {
  std::vector<double> timestamps;  // seconds, one a frame, from the first frame of the file
  double sample_fps = 0;           // frames taken over the seconds of the file
  double seconds = 0;              // of the whole file
};

struct VideoClip : ClipTimes {
  std::vector<RgbImage> frames;  // upright, all of one size
};

// Takes the frames of a clip one by one, so that they need not all be in memory at the size that
// they have in the file.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // Before the first frame: the upright sides, and how many frames there will be. Comes again when
  // the file turns out to hold other frames than its packets told; what was taken until then is
  // void. What it throws comes out of decode_video().
  virtual void begin(const MediaShape& shape) = 0;
  virtual void take(RgbImage frame) = 0;
};

struct DecodedVideo {
  VideoClip clip;
  MediaFormat format = MediaFormat::unknown;
  MemoryLease lease;  // of the frames, and what goes beside them; empty without a budget
};

DecodedVideo decode_video(std::span<const std::byte> bytes, const VideoSampling& sampling,
                          const VideoLimits& limits, const DecodeContext& context = {});

struct StreamedVideo {
  ClipTimes times;
  MediaFormat format = MediaFormat::unknown;
  MemoryLease lease;  // of what the caller takes beside; empty without a budget
};

// The same frames, none of them kept.
StreamedVideo decode_video(std::span<const std::byte> bytes, const VideoSampling& sampling,
                           const VideoLimits& limits, FrameSink& sink,
                           const DecodeContext& context = {});

}  // namespace vitrove
