#include "media/decoder_versions.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "vitrove/media.h"

namespace vitrove {
namespace {

// AVIF and HEIC share a decoder.
std::string_view decoder_name(MediaFormat format) {
  const bool is_heif = format == MediaFormat::avif || format == MediaFormat::heic;
  return is_heif ? "heif" : to_string(format);
}

void append(std::vector<PipelineVersion>& versions, std::vector<PipelineVersion> more) {
  std::ranges::move(more, std::back_inserter(versions));
}

}  // namespace

PipelineVersion ffmpeg_version(std::string name, unsigned version) {
  return {std::move(name), version >> 8};  // the last eight bits are mends
}

std::vector<PipelineVersion> decoder_versions(MediaFormat format) {
  std::vector<PipelineVersion> versions;
  if (is_decodable(format, Modality::image)) {
    for (auto& version : image_decoder_versions()) {
      if (version.name == decoder_name(format)) versions.push_back(std::move(version));
    }
  }
  if (is_decodable(format, Modality::video)) append(versions, video_decoder_versions());
  if (is_decodable(format, Modality::audio)) append(versions, audio_decoder_versions());
  return versions;
}

std::vector<PipelineVersion> decoder_versions(Modality modality) {
  switch (modality) {
    case Modality::image:
      return image_decoder_versions();
    case Modality::video:
      return video_decoder_versions();
    case Modality::audio:
      return audio_decoder_versions();
  }
  return {};
}

}  // namespace vitrove
