// A sine of our own, since those of C libraries differ in the last bit: what promises the same
// numbers on every machine takes this one. Include it in parts that are compiled without fused
// multiply-add.
#pragma once

#include <cmath>
#include <numbers>

namespace vitrove {

// sin(pi * x), by Taylor's series on [-pi/2, pi/2].
inline double sine_of_pi_times(double x) {
  x -= 2 * std::floor(x / 2 + 0.5);  // to [-1, 1)
  if (x > 0.5) x = 1 - x;
  if (x < -0.5) x = -1 - x;
  const double angle = std::numbers::pi * x;
  double term = angle;
  double sum = angle;
  for (int n = 1; n <= 14; ++n) {
    term *= -angle * angle / ((2.0 * n) * (2.0 * n + 1));
    sum += term;
  }
  return sum;
}

}  // namespace vitrove
