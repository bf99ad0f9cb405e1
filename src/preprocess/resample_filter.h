// The filters of Pillow's resize, as weights in fixed point.
//
// Every output pixel along an axis is a weighted sum of a run of input pixels. Weights are computed
// in double from the filter's curve, widened by the scale when shrinking, normalised to a sum of
// one, and rounded to 22 fractional bits: 8 bits of pixel and 2 bits of headroom fill the 32 bits
// of a sum. Being bit for bit Pillow's matters: models were trained on what Pillow makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vitrove {

// Numbers as in PIL.Image and in preprocessor_config.json.
enum class Resampling : std::uint8_t {
  nearest = 0,
  lanczos = 1,
  bilinear = 2,
  bicubic = 3,
  box = 4,
  hamming = 5,
};

constexpr int weight_bits = 22;

// How fine weights are. Pillow keeps 22 fractional bits; torchvision, for bilinear and bicubic on
// bytes, as many as leave the largest weight of an axis 16 bits, so that a few values differ by
// one.
enum class WeightRounding : std::uint8_t { pillow, torchvision };

// The part of an axis that is wanted.
struct Range {
  std::uint32_t start = 0;
  std::uint32_t length = 0;
  std::uint32_t end() const { return start + length; }
  bool operator==(const Range&) const = default;
};

// For each output pixel of a range: which input pixels count, and how much.
class AxisWeights {
 public:
  // From `input` to `output` pixels, for output pixels `wanted`. Not for nearest.
  AxisWeights(std::uint32_t input, std::uint32_t output, const Range& wanted, Resampling filter,
              WeightRounding rounding = WeightRounding::pillow);

  std::size_t size() const { return runs_.size(); }
  const Range& run(std::size_t i) const { return runs_[i]; }
  std::span<const std::int32_t> weights(std::size_t i) const {
    return std::span(weights_).subspan(i * stride_, runs_[i].length);
  }
  std::size_t max_run() const { return stride_; }
  // The same before there are any.
  static std::size_t max_run(std::uint32_t input, std::uint32_t output, Resampling filter);
  // What `outputs` pixels with runs of that length take.
  static std::uint64_t bytes(std::uint64_t run, std::uint64_t outputs) {
    return outputs * (sizeof(Range) + run * sizeof(std::int32_t));
  }
  // All input pixels that are used; runs start in rising order.
  Range used() const;

 private:
  std::size_t stride_;
  std::vector<Range> runs_;
  std::vector<std::int32_t> weights_;
};

// Input pixels of the nearest filter for output pixels `wanted`.
std::vector<std::uint32_t> nearest_positions(std::uint32_t input, std::uint32_t output,
                                             const Range& wanted);

}  // namespace vitrove
