#include "media/resampler.h"

#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/sine.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr double zero_crossings = 32;
constexpr double rolloff = 0.95;
constexpr double kaiser_beta = 10.0;
constexpr std::size_t lanes = 8;
constexpr std::uint64_t most_coefficients = 8'000'000;

double bessel_i0(double x) {
  double term = 1;
  double sum = 1;
  for (int n = 1; n <= 60; ++n) {
    term *= (x / 2 / n) * (x / 2 / n);
    sum += term;
  }
  return sum;
}

double sinc(double x) { return x == 0 ? 1.0 : sine_of_pi_times(x) / (std::numbers::pi * x); }

// `x` from -1 to 1.
double kaiser(double x) {
  const double inside = 1 - x * x;
  return inside <= 0 ? 0.0 : bessel_i0(kaiser_beta * std::sqrt(inside)) / bessel_i0(kaiser_beta);
}

// The filter by the distance in zero crossings, which is the same for all rates: points of it, and
// cubics between them, true to 1e-8. Some pairs of rates have millions of coefficients, and a file
// of a hundred bytes may ask for them.
class Kernel {
 public:
  static const Kernel& shared() {
    static const Kernel kernel;
    return kernel;
  }

  double operator()(double distance) const {
    const double place = std::abs(distance) * per_crossing;
    const auto nth = static_cast<std::size_t>(place);
    if (nth + 4 > points_.size()) return 0;
    const double* y = &points_[nth];  // the first is the point before
    const double part = place - static_cast<double>(nth);
    const double linear = y[2] - y[0] / 3 - y[1] / 2 - y[3] / 6;
    const double square = (y[0] + y[2]) / 2 - y[1];
    const double cube = (y[3] - y[0]) / 6 + (y[1] - y[2]) / 2;
    return ((cube * part + square) * part + linear) * part + y[1];
  }

 private:
  static constexpr double per_crossing = 512;

  Kernel() {
    const auto count = static_cast<std::size_t>(zero_crossings * per_crossing) + 3;
    points_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const double distance = (static_cast<double>(i) - 1) / per_crossing;
      points_.push_back(sinc(distance) * kaiser(distance / zero_crossings));
    }
  }

  std::vector<double> points_;
};

std::uint32_t reduced(std::uint32_t rate, std::uint32_t other) {
  return rate / std::gcd(rate, other);
}

}  // namespace

std::uint64_t resampled_length(std::uint64_t count, std::uint32_t from, std::uint32_t to) {
  return (count * to + from - 1) / from;
}

FilterShape::FilterShape(std::uint32_t from, std::uint32_t to)
    : up(reduced(to, from)), down(reduced(from, to)) {
  if (up == down) return;
  cutoff = rolloff * std::min(1.0, static_cast<double>(to) / from);
  half = static_cast<std::size_t>(std::ceil(zero_crossings / cutoff));
  taps = (2 * half + lanes - 1) / lanes * lanes;
  if (std::uint64_t{up} * taps > most_coefficients) {
    throw Error(ErrorCode::unsupported_format, "sound of " + std::to_string(from) +
                                                   " samples a second cannot be resampled to " +
                                                   std::to_string(to));
  }
}

Resampler::Resampler(const FilterShape& shape) : shape_(shape) {
  if (shape_.taps == 0) return;
  make_filters();
  input_.assign(shape_.half - 1, 0.0F);
}

// Tap j is for the input sample half - 1 - j before the output's place, rounded down. The taps of a
// phase add up to one, so that silence and constants stay what they are.
void Resampler::make_filters() {
  filters_.assign(std::size_t{shape_.up} * shape_.taps, 0.0F);
  const Kernel& kernel = Kernel::shared();
  std::vector<double> taps(2 * shape_.half);
  for (std::size_t phase = 0; phase < shape_.up; ++phase) {
    const double first = static_cast<double>(phase) / shape_.up + static_cast<double>(shape_.half);
    double sum = 0;
    for (std::size_t j = 0; j < taps.size(); ++j) {
      taps[j] = kernel(shape_.cutoff * (first - 1 - static_cast<double>(j)));
      sum += taps[j];
    }
    for (std::size_t j = 0; j < taps.size(); ++j) {
      filters_[phase * shape_.taps + j] = static_cast<float>(taps[j] / sum);
    }
  }
}

void Resampler::push(std::span<const float> samples) {
  received_ += samples.size();
  if (shape_.taps == 0) {
    output_.insert(output_.end(), samples.begin(), samples.end());
    return;
  }
  input_.insert(input_.end(), samples.begin(), samples.end());
  drain();
}

void Resampler::finish() {
  if (shape_.taps == 0) return;
  const std::uint64_t wanted = resampled_length(received_, shape_.down, shape_.up);
  input_.insert(input_.end(), shape_.taps + shape_.down / shape_.up + 1, 0.0F);
  drain();
  output_.resize(wanted);
}

void Resampler::drain() {
  std::size_t at = 0;
  while (at + shape_.taps <= input_.size()) {
    output_.push_back(filtered(at, phase_));
    phase_ += shape_.down;
    at += phase_ / shape_.up;
    phase_ %= shape_.up;
  }
  at = std::min(at, input_.size());
  input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(at));
}

// Lanes of their own, so that compilers may use vectors without another order of additions.
float Resampler::filtered(std::size_t at, std::size_t phase) const {
  const float* filter = &filters_[phase * shape_.taps];
  const float* input = &input_[at];
  std::array<float, lanes> sums{};
  for (std::size_t j = 0; j < shape_.taps; j += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      sums[lane] += filter[j + lane] * input[j + lane];
    }
  }
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

}  // namespace vitrove
