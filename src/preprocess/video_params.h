// The parameters of frame sampling (vitrove/video.h) in their two outer forms. For every family
// that takes clips.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "vitrove/params.h"
#include "vitrove/video.h"

namespace vitrove {

// Takes fps, num_frames, min_frames and max_frames out of `object`, and leaves what else is there;
// null means the default stays. Throws Error{invalid_argument} naming a parameter of the wrong type
// or out of range, and when num_frames stands beside one that it replaces.
void take_video_sampling(nlohmann::json& object, VideoSampling& sampling);

// With num_frames the others say nothing, and are left out. The rule is the family's.
void add_to_resolved(const VideoSampling& sampling, ResolvedParams& resolved);
VideoSampling sampling_from_resolved(const ResolvedParams& resolved);

}  // namespace vitrove
