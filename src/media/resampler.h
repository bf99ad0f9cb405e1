// Changes the rate of a mono sound: a windowed sinc with one filter a phase (vitrove/audio.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vitrove {

// ceil(count * to / from)
std::uint64_t resampled_length(std::uint64_t count, std::uint32_t from, std::uint32_t to);

class Resampler {
 public:
  // Rates that have little in common need one filter for each of very many phases; beyond a few
  // million coefficients that is Error{unsupported_format}.
  Resampler(std::uint32_t from, std::uint32_t to);

  // Bytes of the filters.
  std::uint64_t table_bytes() const { return filters_.size() * sizeof(float); }

  void push(std::span<const float> samples);
  // What has come out so far; after finish() all of it.
  void finish();
  std::vector<float>& output() { return output_; }

 private:
  void make_filters(double cutoff);
  void drain();
  float filtered(std::size_t at, std::size_t phase) const;

  const std::uint32_t up_;  // the rates without their common factor
  const std::uint32_t down_;
  std::size_t half_ = 0;  // input samples on either side of an output sample
  std::size_t taps_ = 0;
  std::vector<float> filters_;  // up_ times taps_
  std::vector<float> input_;    // not used up; starts half_ - 1 samples before the next output's
  std::uint64_t phase_ = 0;
  std::uint64_t received_ = 0;
  std::vector<float> output_;
};

}  // namespace vitrove
