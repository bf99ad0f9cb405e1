// Frames of an audio decoder to mono samples.
#pragma once

#include <vector>

#include "media/ffmpeg_source.h"

namespace vitrove {

// The mean of all channels. Throws Error: unsupported_format for samples of a kind that no decoder
// of ours gives, invalid_argument for those that are not finite.
void downmix(const AVFrame& frame, std::vector<float>& mono);

}  // namespace vitrove
