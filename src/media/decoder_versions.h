// The versions of the decoders, a function for each group of them; vitrove/media.h puts them
// together.
#pragma once

#include <vector>

#include "vitrove/embedding_key.h"

namespace vitrove {

// Raise a number, beside the decoder, whenever the decoded bytes of any file may change.
std::vector<PipelineVersion> image_decoder_versions();
PipelineVersion video_decoder_version();
PipelineVersion audio_decoder_version();

}  // namespace vitrove
