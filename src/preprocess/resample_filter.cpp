#include "preprocess/resample_filter.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace vitrove {
namespace {

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double bilinear(double x) { return std::max(1.0 - std::abs(x), 0.0); }

double hamming(double x) {
  x = std::abs(x);
  if (x == 0.0) return 1.0;
  if (x >= 1.0) return 0.0;
  // Pillow's constants are single precision.
  constexpr double base = 0.54f;
  constexpr double swing = 0.46f;
  return sinc(x) * (base + swing * std::cos(x * std::numbers::pi));
}

// Keys' cubic with a = -1/2.
double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
  return 0.0;
}

double lanczos(double x) { return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0; }

struct Filter {
  double (*curve)(double);
  double reach;  // zero beyond
};

Filter filter_of(Resampling resampling) {
  switch (resampling) {
    case Resampling::lanczos:
      return {lanczos, 3.0};
    case Resampling::bilinear:
      return {bilinear, 1.0};
    case Resampling::bicubic:
      return {bicubic, 2.0};
    case Resampling::hamming:
      return {hamming, 1.0};
    default:
      return {box, 0.5};
  }
}

std::int32_t to_fixed(double weight, int bits) {
  const double scaled = weight * (1 << bits);
  return static_cast<std::int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

// As many bits as keep the largest weight below 2^15.
int short_weight_bits(double largest) {
  int bits = 0;
  while (bits < weight_bits && std::lround(largest * (2 << bits)) < (1 << 15)) ++bits;
  return bits;
}

}  // namespace

std::size_t AxisWeights::max_run(std::uint32_t input, std::uint32_t output, Resampling filter) {
  const double widening = std::max(static_cast<double>(input) / output, 1.0);
  return static_cast<std::size_t>(std::ceil(filter_of(filter).reach * widening)) * 2 + 1;
}

AxisWeights::AxisWeights(std::uint32_t input, std::uint32_t output, const Range& wanted,
                         Resampling resampling, WeightRounding rounding)
    : stride_(max_run(input, output, resampling)) {
  const Filter filter = filter_of(resampling);
  const double scale = static_cast<double>(input) / output;
  const double widening = std::max(scale, 1.0);
  const double reach = filter.reach * widening;
  std::vector<double> exact(stride_);
  // The run of output pixel `i`, whose weights then stand in `exact`.
  const auto compute = [&](std::uint32_t i) {
    const double center = (i + 0.5) * scale;
    // Truncating towards zero, so the first input pixel is the first whole one in reach.
    const double first = std::max(std::trunc(center - reach + 0.5), 0.0);
    const double last = std::min(std::trunc(center + reach + 0.5), static_cast<double>(input));
    const Range run{static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last - first)};
    double sum = 0.0;
    for (std::uint32_t k = 0; k < run.length; ++k) {
      exact[k] = filter.curve((k + first - center + 0.5) * (1.0 / widening));
      sum += exact[k];
    }
    for (std::uint32_t k = 0; k < run.length && sum != 0.0; ++k) exact[k] /= sum;
    return run;
  };
  int bits = weight_bits;
  if (rounding == WeightRounding::torchvision) {
    double largest = 0.0;  // of the whole axis, whatever is wanted of it
    for (std::uint32_t i = 0; i < output; ++i) {
      const std::uint32_t length = compute(i).length;
      for (std::uint32_t k = 0; k < length; ++k) largest = std::max(largest, exact[k]);
    }
    bits = short_weight_bits(largest);
  }
  // Fewer bits than the kernels work with are padded with zeros: the same sums, further up.
  const std::int32_t unit = 1 << (weight_bits - bits);
  runs_.reserve(wanted.length);
  weights_.resize(stride_ * wanted.length);
  for (std::uint32_t i = 0; i < wanted.length; ++i) {
    runs_.push_back(compute(wanted.start + i));
    for (std::uint32_t k = 0; k < runs_.back().length; ++k) {
      weights_[i * stride_ + k] = to_fixed(exact[k], bits) * unit;
    }
  }
}

Range AxisWeights::used() const {
  std::uint32_t end = 0;
  for (const Range& run : runs_) end = std::max(end, run.end());
  return {runs_.front().start, end - runs_.front().start};
}

std::vector<std::uint32_t> nearest_positions(std::uint32_t input, std::uint32_t output,
                                             const Range& wanted) {
  const double scale = static_cast<double>(input) / output;
  std::vector<std::uint32_t> positions;
  positions.reserve(wanted.length);
  // Stepping, not multiplying: Pillow's rounding errors are part of its result.
  double at = scale * 0.5;
  for (std::uint32_t i = 0; i < wanted.end(); ++i, at += scale) {
    if (i < wanted.start) continue;
    positions.push_back(std::min(static_cast<std::uint32_t>(at), input - 1));
  }
  return positions;
}

}  // namespace vitrove
