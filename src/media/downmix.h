// Frames of an audio decoder to mono samples.
#pragma once

#include <vector>

#include "media/ffmpeg_source.h"

namespace vitrove {

// The mean of all channels. False when the samples are of a kind that no decoder of ours gives, or
// not finite.
bool downmix(const AVFrame& frame, std::vector<float>& mono);

}  // namespace vitrove
