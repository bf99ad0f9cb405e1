// The versions of the decoders, a function for each group of them; vitrove/media.h puts them
// together.
#pragma once

#include <string>
#include <vector>

#include "vitrove/embedding_key.h"

namespace vitrove {

// Raise a number, beside the decoder, whenever the decoded bytes of any file may change.
std::vector<PipelineVersion> image_decoder_versions();
std::vector<PipelineVersion> video_decoder_versions();
std::vector<PipelineVersion> audio_decoder_versions();

// One of FFmpeg's libraries: major and minor version, which may come with other bytes.
PipelineVersion ffmpeg_version(std::string name, unsigned version);

}  // namespace vitrove
