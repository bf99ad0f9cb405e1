#include "preprocess/log_mel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/sine.h"
#include "preprocess/real_dft.h"

namespace vitrove {
namespace {

constexpr double highest_hertz = 8000.0;  // whatever the sampling rate
constexpr double floor_power = 1e-10;
constexpr float silence = -10.0F;  // its logarithm
constexpr float dynamic_range = 8.0F;

// Slaney's scale: linear up to 1000 Hz, which is 15 mel, logarithmic beyond.
constexpr double break_hertz = 1000.0;
constexpr double break_mel = 15.0;

double mel_to_hertz(double mel) {
  if (mel < break_mel) return 200.0 * mel / 3.0;
  return break_hertz * std::exp(std::log(6.4) / 27.0 * (mel - break_mel));
}

double highest_mel() {
  return break_mel + std::log(highest_hertz / break_hertz) * (27.0 / std::log(6.4));
}

std::vector<double> hann_window(std::size_t length) {
  std::vector<double> window(length);
  for (std::size_t i = 0; i < length; ++i) {
    const double half_turns = 2.0 * static_cast<double>(i) / static_cast<double>(length);
    window[i] = 0.5 - 0.5 * sine_of_pi_times(half_turns + 0.5);
  }
  return window;
}

// The sound cut or padded to the chunk, with half a frame mirrored at both ends.
std::vector<float> padded_sound(std::span<const float> sound, const LogMelParams& params) {
  const std::size_t length = params.samples();
  const std::size_t half = params.n_fft / 2;
  std::vector<float> padded(length + 2 * half, static_cast<float>(params.padding_value));
  float* const middle = padded.data() + half;
  std::ranges::copy(sound.first(std::min(sound.size(), length)), middle);
  for (std::size_t i = 1; i <= half; ++i) {
    *(middle - i) = middle[i];
    middle[length - 1 + i] = middle[length - 1 - i];
  }
  return padded;
}

class LogMel {
 public:
  LogMel(std::span<const float> sound, const LogMelParams& params)
      : params_(params),
        padded_(padded_sound(sound, params)),
        window_(hann_window(params.n_fft)),
        filters_(make_mel_filters(params)),
        dft_(params.n_fft),
        input_(params.n_fft * RealDft::frames),
        power_(dft_.bins() * RealDft::frames),
        result_(params.feature_size * params.frames(), silence) {}

  std::vector<float> make(std::size_t sounding_frames) {
    for (std::size_t frame = 0; frame < sounding_frames; frame += RealDft::frames) {
      make_frames(frame, std::min(RealDft::frames, sounding_frames - frame));
    }
    const float quietest = *std::ranges::max_element(result_) - dynamic_range;
    for (float& value : result_) value = (std::max(value, quietest) + 4.0F) / 4.0F;
    return std::move(result_);
  }

 private:
  void make_frames(std::size_t first, std::size_t count) {
    for (std::size_t f = 0; f < RealDft::frames; ++f) {
      // A short group is filled up with its last frame.
      const float* const from =
          padded_.data() + (first + std::min(f, count - 1)) * params_.hop_length;
      for (std::size_t i = 0; i < window_.size(); ++i) {
        input_[i * RealDft::frames + f] = double{from[i]} * window_[i];
      }
    }
    dft_.power(input_, power_);
    for (std::size_t mel = 0; mel < filters_.size(); ++mel) {
      const auto sums = filtered(filters_[mel]);
      float* const to = result_.data() + mel * params_.frames() + first;
      for (std::size_t f = 0; f < count; ++f) {
        to[f] = static_cast<float>(std::log10(std::max(sums[f], floor_power)));
      }
    }
  }

  std::array<double, RealDft::frames> filtered(const MelFilter& filter) const {
    std::array<double, RealDft::frames> sums{};
    const double* power = power_.data() + filter.first * RealDft::frames;
    for (const double weight : filter.weights) {
      for (std::size_t f = 0; f < RealDft::frames; ++f) sums[f] += weight * power[f];
      power += RealDft::frames;
    }
    return sums;
  }

  const LogMelParams& params_;
  std::vector<float> padded_;
  std::vector<double> window_;
  std::vector<MelFilter> filters_;
  RealDft dft_;
  std::vector<double> input_;
  std::vector<double> power_;
  std::vector<float> result_;
};

// Frames of nothing but zeros need no transform: they are what results start as.
std::size_t sounding_frames(std::size_t samples, const LogMelParams& params) {
  if (params.padding_value != 0) return params.frames();
  const std::size_t reach = std::min(samples, params.samples()) + params.n_fft / 2;
  return std::min(reach / params.hop_length + 1, params.frames());
}

}  // namespace

std::vector<MelFilter> make_mel_filters(const LogMelParams& params) {
  const std::size_t bins = params.n_fft / 2 + 1;
  // Whole hertz, as the reference divides.
  const std::uint32_t nyquist = params.sampling_rate / 2;
  const double bin_width = static_cast<double>(nyquist) / static_cast<double>(bins - 1);
  std::vector<double> corners(params.feature_size + std::size_t{2});
  const double step = highest_mel() / static_cast<double>(corners.size() - 1);
  for (std::size_t i = 0; i < corners.size(); ++i) {
    corners[i] = mel_to_hertz(step * static_cast<double>(i));
  }
  std::vector<MelFilter> filters(params.feature_size);
  for (std::size_t mel = 0; mel < filters.size(); ++mel) {
    const double left = corners[mel];
    const double middle = corners[mel + 1];
    const double right = corners[mel + 2];
    for (std::size_t bin = 0; bin < bins; ++bin) {
      const double hertz = bin_width * static_cast<double>(bin);
      const double height =
          std::min((hertz - left) / (middle - left), (right - hertz) / (right - middle));
      if (height <= 0) continue;
      if (filters[mel].weights.empty()) filters[mel].first = bin;
      filters[mel].weights.push_back(height * (2.0 / (right - left)));
    }
  }
  return filters;
}

std::vector<float> log_mel(std::span<const float> sound, const LogMelParams& params) {
  return LogMel(sound, params).make(sounding_frames(sound.size(), params));
}

std::uint64_t log_mel_scratch_bytes(const LogMelParams& params) {
  const std::uint64_t padded = sizeof(float) * (params.samples() + params.n_fft);
  // The window, frames being transformed, filters: small, generously.
  const std::uint64_t tables =
      std::uint64_t{sizeof(double)} * params.n_fft * (64 + params.feature_size);
  return padded + tables;
}

}  // namespace vitrove
