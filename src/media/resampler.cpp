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

std::uint32_t reduced(std::uint32_t rate, std::uint32_t other) {
  return rate / std::gcd(rate, other);
}

}  // namespace

std::uint64_t resampled_length(std::uint64_t count, std::uint32_t from, std::uint32_t to) {
  return (count * to + from - 1) / from;
}

Resampler::Resampler(std::uint32_t from, std::uint32_t to)
    : up_(reduced(to, from)), down_(reduced(from, to)) {
  if (up_ == down_) return;
  const double cutoff = rolloff * std::min(1.0, static_cast<double>(to) / from);
  half_ = static_cast<std::size_t>(std::ceil(zero_crossings / cutoff));
  taps_ = (2 * half_ + lanes - 1) / lanes * lanes;
  if (std::uint64_t{up_} * taps_ > most_coefficients) {
    throw Error(ErrorCode::unsupported_format, "sound of " + std::to_string(from) +
                                                   " samples a second cannot be resampled to " +
                                                   std::to_string(to));
  }
  make_filters(cutoff);
  input_.assign(half_ - 1, 0.0F);
}

// Tap j is for the input sample half_ - 1 - j before the output's place, rounded down. The taps of
// a phase add up to one, so that silence and constants stay what they are.
void Resampler::make_filters(double cutoff) {
  filters_.assign(std::size_t{up_} * taps_, 0.0F);
  const double width = zero_crossings / cutoff;
  std::vector<double> taps(2 * half_);
  for (std::size_t phase = 0; phase < up_; ++phase) {
    const double fraction = static_cast<double>(phase) / up_;
    double sum = 0;
    for (std::size_t j = 0; j < taps.size(); ++j) {
      const double distance = fraction + static_cast<double>(half_) - 1 - static_cast<double>(j);
      taps[j] = sinc(cutoff * distance) * kaiser(distance / width);
      sum += taps[j];
    }
    for (std::size_t j = 0; j < taps.size(); ++j) {
      filters_[phase * taps_ + j] = static_cast<float>(taps[j] / sum);
    }
  }
}

void Resampler::push(std::span<const float> samples) {
  received_ += samples.size();
  if (up_ == down_) {
    output_.insert(output_.end(), samples.begin(), samples.end());
    return;
  }
  input_.insert(input_.end(), samples.begin(), samples.end());
  drain();
}

void Resampler::finish() {
  if (up_ == down_) return;
  const std::uint64_t wanted = resampled_length(received_, down_, up_);
  input_.insert(input_.end(), taps_ + down_ / up_ + 1, 0.0F);
  drain();
  output_.resize(wanted);
}

void Resampler::drain() {
  std::size_t at = 0;
  while (at + taps_ <= input_.size()) {
    output_.push_back(filtered(at, phase_));
    phase_ += down_;
    at += phase_ / up_;
    phase_ %= up_;
  }
  at = std::min(at, input_.size());
  input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(at));
}

// Lanes of their own, so that compilers may use vectors without another order of additions.
float Resampler::filtered(std::size_t at, std::size_t phase) const {
  const float* filter = &filters_[phase * taps_];
  const float* input = &input_[at];
  std::array<float, lanes> sums{};
  for (std::size_t j = 0; j < taps_; j += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      sums[lane] += filter[j + lane] * input[j + lane];
    }
  }
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

}  // namespace vitrove
