#include "simulation/media_model.h"

#include <cmath>

namespace vitrove::simulation {
namespace {

struct Shape {
  Modality modality;
  double fewest_tokens;
  double most_tokens;
  double row_bytes;
  double us_at_least;
  double us_a_token;
};
constexpr Shape picture_shape{Modality::image, 64, 4096, 4096, 3000, 40};
constexpr Shape video_shape{Modality::video, 1500, 16000, 4096, 300000, 40};
constexpr Shape sound_shape{Modality::audio, 50, 1500, 2560, 5000, 12};

TraceRequest draw(const Shape& shape, std::uint64_t key, double magnitude) {
  const double tokens = std::round(shape.fewest_tokens *
                                   std::pow(shape.most_tokens / shape.fewest_tokens, magnitude));
  const double cost = shape.us_at_least + tokens * shape.us_a_token * (1 + tokens / 8000);
  return {key, static_cast<std::uint64_t>(tokens * shape.row_bytes),
          static_cast<std::uint64_t>(cost), shape.modality};
}

// A number from 0 to 1 that looks random (the finaliser of SplitMix64).
double scatter(std::uint64_t number) {
  number += 0x9E3779B97F4A7C15U;
  number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9U;
  number = (number ^ (number >> 27)) * 0x94D049BB133111EBU;
  number ^= number >> 31;
  return static_cast<double>(number >> 11) * 0x1p-53;
}

}  // namespace

TraceRequest picture(std::uint64_t key, double magnitude) {
  return draw(picture_shape, key, magnitude);
}
TraceRequest video(std::uint64_t key, double magnitude) {
  return draw(video_shape, key, magnitude);
}
TraceRequest sound(std::uint64_t key, double magnitude) {
  return draw(sound_shape, key, magnitude);
}

TraceRequest MediaModel::item(std::uint64_t key) const {
  const std::uint64_t base = (key * 0xD6E8FEB86659FD93U) ^ (seed_ * 0xA0761D6478BD642FU);
  const double kind = scatter(base);
  const double magnitude = scatter(base + 1);
  if (mix_ == Mix::pictures || kind < 0.85) return picture(key, magnitude);
  return kind < 0.9 ? video(key, magnitude) : sound(key, magnitude);
}

}  // namespace vitrove::simulation
