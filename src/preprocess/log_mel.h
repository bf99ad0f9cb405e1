// Log-mel features of sound, as Whisper's feature extractor makes them.
//
// Frames of n_fft samples around every hop_length-th one, the ends mirrored; times a Hann window;
// power spectrum; triangular filters on Slaney's mel scale, of equal area; log10, held above 1e-10
// and above the loudest value less 8; (x + 4) / 4. In double up to the logarithm, then in float32.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "preprocess/json_params.h"

namespace vitrove {

struct LogMelParams {
  std::uint32_t feature_size = 80;
  std::uint32_t sampling_rate = 16'000;
  std::uint32_t hop_length = 160;
  std::uint32_t n_fft = 400;
  std::uint32_t chunk_length = 30;  // seconds: what is longer is cut off, what is shorter padded
  double padding_value = 0.0;
  bool return_attention_mask = false;

  std::size_t samples() const { return std::size_t{chunk_length} * sampling_rate; }
  std::size_t frames() const { return samples() / hop_length; }
};

// [feature_size, frames()].
std::vector<float> log_mel(std::span<const float> sound, const LogMelParams& params);

// What that takes beside its result.
std::uint64_t log_mel_scratch_bytes(const LogMelParams& params);

// A filter's weights, from its first bin on.
struct MelFilter {
  std::size_t first = 0;
  std::vector<double> weights;
};
std::vector<MelFilter> make_mel_filters(const LogMelParams& params);

}  // namespace vitrove
