// The times of a clip's frames, as its packets tell them before anything is decoded.
#pragma once

#include <cstdint>

#include "media/ffmpeg_source.h"

namespace vitrove {

struct FrameSurvey {
  std::uint64_t frames = 0;
  double seconds = 0;  // from the first frame to the end of the last
  double rate = 0;     // frames a second; what the container says where that is nearly the same
  std::uint64_t largest_packet = 0;    // bytes
  bool begins_with_key_frame = false;  // by the word of the container
};

// Reads all packets. Throws Error{too_large} beyond `max_frames`, and what FfmpegSource throws.
FrameSurvey survey_frames(FfmpegSource& source, std::uint64_t max_frames);

}  // namespace vitrove
