// The preprocessor of Whisper and Qwen2-Audio: log-mel features of a chunk of sound.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "preprocess/log_mel.h"
#include "preprocess/processed_size.h"
#include "vitrove/preprocess.h"

namespace vitrove {

struct SoundFamily {
  std::string_view name;
  std::uint32_t version;
  std::string_view mask_name;  // of the tensor that return_attention_mask adds
  bool counts_mask;            // tokens are counted from it
  LogMelParams params;
};

// By feature_extractor_type and processor_class; nothing when they are of another family.
std::optional<SoundFamily> find_sound_family(const std::string& extractor,
                                             const std::string& processor);

// Throws Error{invalid_argument} naming parameters that are unknown, of the wrong type or out of
// range.
void apply_json(const nlohmann::json& object, ParamSource source, SoundFamily& family);

class SoundProcessor final : public Preprocessor {
 public:
  // With the parameters of its file in `family`.
  SoundProcessor(const SoundFamily& family, const PreprocessLimits& limits)
      : family_(family),
        most_seconds_(bound_or(limits.max_sound_seconds, family.params.chunk_length)) {
    check_processed_bound(limits.max_sound_seconds, family.params.chunk_length, processed_seconds);
  }

  std::string_view family() const override { return family_.name; }
  ResolvedParams resolve(Modality modality, std::string_view kwargs) const override;
  std::uint64_t bytes_beside(std::uint32_t width, std::uint32_t height,
                             const ResolvedParams& params) const override;
  PreprocessedItem run(const RgbImage& image, const ResolvedParams& params) const override;
  std::uint32_t audio_rate(const ResolvedParams& params) const override;
  std::uint64_t audio_bytes_beside(std::uint64_t samples,
                                   const ResolvedParams& params) const override;
  PreprocessedItem run_audio(const AudioClip& clip, const ResolvedParams& params) const override;
  std::vector<PipelineVersion> versions() const override;

 private:
  const SoundFamily family_;
  const std::uint64_t most_seconds_;  // of chunk_length
};

}  // namespace vitrove
