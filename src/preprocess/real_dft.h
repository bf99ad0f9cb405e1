// Power spectra of real frames, several frames at a time.
//
// The sizes that matter are small and no powers of two (Whisper's is 400), so this is one step of
// Cooley and Tukey: N = a * b points become b transforms of a points and a of b points, each done
// by its definition (20 x 20 for 400: a sixth of the work of the plain sum). All in double with a
// fixed order of operations and a sine of our own: the same bits on every machine.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace vitrove {

class RealDft {
 public:
  // Frames that are transformed at once; element i of frame f stands at i * frames + f.
  static constexpr std::size_t frames = 8;

  // `points` is at least 2.
  explicit RealDft(std::size_t points);

  std::size_t points() const { return points_; }
  std::size_t bins() const { return points_ / 2 + 1; }

  // |X[k]|^2 of `input` (points() * frames) to `power` (bins() * frames). Not thread-safe.
  void power(std::span<const double> input, std::span<double> power);

 private:
  void transform_columns(std::span<const double> input);
  void sum_bin(std::size_t bin, double* power) const;

  std::size_t points_;
  std::size_t outer_;  // a, which is at most b
  std::size_t inner_;  // b
  std::vector<double> cosines_;
  std::vector<double> sines_;
  // [outer / 2 + 1][inner][frames] after the first transforms and their twiddle factors; the others
  // are their conjugates.
  std::vector<double> real_;
  std::vector<double> imaginary_;
};

}  // namespace vitrove
