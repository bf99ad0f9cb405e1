#include "preprocess/real_dft.h"

#include <algorithm>
#include <array>

#include "base/sine.h"

namespace vitrove {
namespace {

using Lane = std::array<double, RealDft::frames>;

std::size_t largest_factor_up_to_root(std::size_t number) {
  std::size_t best = 1;
  for (std::size_t factor = 2; factor * factor <= number; ++factor) {
    if (number % factor == 0) best = factor;
  }
  return best;
}

}  // namespace

RealDft::RealDft(std::size_t points)
    : points_(points),
      outer_(largest_factor_up_to_root(points)),
      inner_(points / outer_),
      cosines_(points),
      sines_(points),
      real_((outer_ / 2 + 1) * inner_ * frames),
      imaginary_(real_.size()) {
  for (std::size_t i = 0; i < points; ++i) {
    const double half_turns = 2.0 * static_cast<double>(i) / static_cast<double>(points);
    cosines_[i] = sine_of_pi_times(half_turns + 0.5);
    sines_[i] = -sine_of_pi_times(half_turns);
  }
}

// With n = inner * n1 + n2: over n1 for each n2, times the twiddle factor of k1 * n2.
void RealDft::transform_columns(std::span<const double> input) {
  for (std::size_t k1 = 0; k1 <= outer_ / 2; ++k1) {
    for (std::size_t n2 = 0; n2 < inner_; ++n2) {
      Lane real{};
      Lane imaginary{};
      for (std::size_t n1 = 0; n1 < outer_; ++n1) {
        const std::size_t angle = n1 * k1 % outer_ * inner_;
        const double* const x = input.data() + (inner_ * n1 + n2) * frames;
        for (std::size_t f = 0; f < frames; ++f) {
          real[f] += x[f] * cosines_[angle];
          imaginary[f] += x[f] * sines_[angle];
        }
      }
      const double turn_real = cosines_[k1 * n2 % points_];
      const double turn_imaginary = sines_[k1 * n2 % points_];
      double* const to_real = real_.data() + (k1 * inner_ + n2) * frames;
      double* const to_imaginary = imaginary_.data() + (k1 * inner_ + n2) * frames;
      for (std::size_t f = 0; f < frames; ++f) {
        to_real[f] = real[f] * turn_real - imaginary[f] * turn_imaginary;
        to_imaginary[f] = real[f] * turn_imaginary + imaginary[f] * turn_real;
      }
    }
  }
}

// With k = k1 + outer * k2: over n2. For k1 beyond the half, what is stored belongs to outer - k1:
// its conjugate, short of a turn by n2 / inner.
void RealDft::sum_bin(std::size_t bin, double* power) const {
  const std::size_t k1 = bin % outer_;
  const bool is_mirrored = k1 > outer_ / 2;
  const std::size_t row = is_mirrored ? outer_ - k1 : k1;
  const double sign = is_mirrored ? -1.0 : 1.0;
  const std::size_t turns = bin / outer_ + (is_mirrored ? 1 : 0);
  Lane real{};
  Lane imaginary{};
  for (std::size_t n2 = 0; n2 < inner_; ++n2) {
    const std::size_t angle = n2 * turns % inner_ * outer_;
    const double cosine = cosines_[angle];
    const double sine = sign * sines_[angle];
    const double* const x = real_.data() + (row * inner_ + n2) * frames;
    const double* const y = imaginary_.data() + (row * inner_ + n2) * frames;
    for (std::size_t f = 0; f < frames; ++f) {
      real[f] += x[f] * cosine - y[f] * sine;
      imaginary[f] += x[f] * sine + y[f] * cosine;
    }
  }
  for (std::size_t f = 0; f < frames; ++f)
    power[f] = real[f] * real[f] + imaginary[f] * imaginary[f];
}

void RealDft::power(std::span<const double> input, std::span<double> power) {
  transform_columns(input);
  for (std::size_t bin = 0; bin < bins(); ++bin) sum_bin(bin, power.data() + bin * frames);
}

}  // namespace vitrove
