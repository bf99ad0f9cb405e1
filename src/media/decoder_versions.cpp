#include "media/decoder_versions.h"

#include <string_view>

#include "vitrove/media.h"

namespace vitrove {
namespace {

// AVIF and HEIC share a decoder.
std::string_view decoder_name(MediaFormat format) {
  const bool is_heif = format == MediaFormat::avif || format == MediaFormat::heic;
  return is_heif ? "heif" : to_string(format);
}

}  // namespace

std::vector<PipelineVersion> decoder_versions(MediaFormat format) {
  std::vector<PipelineVersion> versions;
  if (is_decodable(format, Modality::image)) {
    for (auto& version : image_decoder_versions()) {
      if (version.name == decoder_name(format)) versions.push_back(std::move(version));
    }
  }
  if (is_decodable(format, Modality::video)) versions.push_back(video_decoder_version());
  if (is_decodable(format, Modality::audio)) versions.push_back(audio_decoder_version());
  return versions;
}

std::vector<PipelineVersion> decoder_versions(Modality modality) {
  switch (modality) {
    case Modality::image:
      return image_decoder_versions();
    case Modality::video:
      return {video_decoder_version()};
    case Modality::audio:
      return {audio_decoder_version()};
  }
  return {};
}

}  // namespace vitrove
