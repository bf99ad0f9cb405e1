// Weights for kernels that multiply bytes four at a time (AVX-512 VNNI).
//
// Such an instruction takes weights of one signed byte, so a weight is written in three digits of
// base 256 from -128 to 127: w = high * 65536 + middle * 256 + low. The three sums put together
// again are exactly the sum with the whole weights, modulo 2^32, in which it fits.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "preprocess/resample_filter.h"

namespace vitrove {

// Of four weights: the low digits, the middle ones, the high ones; the first weight's digit is the
// lowest byte.
using Quad = std::array<std::uint32_t, 3>;

// `weights` after `zeros` weights of zero, filled up with such to fours.
std::vector<Quad> make_quads(std::span<const std::int32_t> weights, std::size_t zeros = 0);

// The same of all runs of an axis, each beginning at a multiple of four from `origin` on.
class QuadRuns {
 public:
  QuadRuns(const AxisWeights& weights, std::uint32_t origin);

  struct Run {
    std::size_t first = 0;  // in fours from the origin
    std::span<const Quad> quads;
  };
  Run run(std::size_t i) const {
    return {starts_[i].first, std::span(quads_).subspan(starts_[i].at, starts_[i].count)};
  }
  // At most, of `outputs` runs of that length.
  static std::uint64_t bytes(std::uint64_t run, std::uint64_t outputs) {
    return outputs * (sizeof(Start) + (run / 4 + 2) * sizeof(Quad));
  }

 private:
  struct Start {
    std::size_t first;
    std::size_t at;
    std::size_t count;
  };
  std::vector<Start> starts_;
  std::vector<Quad> quads_;
};

}  // namespace vitrove
