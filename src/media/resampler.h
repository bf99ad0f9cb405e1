// Changes the rate of a mono sound: a windowed sinc with one filter a phase (vitrove/audio.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vitrove {

// ceil(count * to / from)
std::uint64_t resampled_length(std::uint64_t count, std::uint32_t from, std::uint32_t to);

// What a pair of rates asks for.
struct FilterShape {
  // Rates that have little in common need one filter for each of very many phases; beyond a few
  // million coefficients that is Error{unsupported_format}.
  FilterShape(std::uint32_t from, std::uint32_t to);

  std::uint64_t table_bytes() const { return std::uint64_t{up} * taps * sizeof(float); }

  std::uint32_t up;  // the rates without their common factor
  std::uint32_t down;
  double cutoff = 1;
  std::size_t half = 0;  // input samples on either side of an output sample
  std::size_t taps = 0;  // none at equal rates
};

class Resampler {
 public:
  explicit Resampler(const FilterShape& shape);

  void push(std::span<const float> samples);
  // What has come out so far; after finish() all of it.
  void finish();
  std::vector<float>& output() { return output_; }

 private:
  void make_filters();
  void drain();
  float filtered(std::size_t at, std::size_t phase) const;

  const FilterShape shape_;
  std::vector<float> filters_;  // one of `taps` for each of `up` phases
  std::vector<float> input_;    // not used up; starts half - 1 samples before the next output's
  std::uint64_t phase_ = 0;
  std::uint64_t received_ = 0;
  std::vector<float> output_;
};

}  // namespace vitrove
