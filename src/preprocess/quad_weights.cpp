#include "preprocess/quad_weights.h"

namespace vitrove {
namespace {

constexpr std::size_t four = 4;

// The lowest digit; what is left is a multiple of 256.
std::int32_t lowest_digit(std::int32_t weight) { return static_cast<std::int8_t>(weight & 0xff); }

void add_weight(Quad& quad, std::size_t place, std::int32_t weight) {
  for (std::uint32_t& digits : quad) {
    const std::int32_t digit = lowest_digit(weight);
    digits |= (static_cast<std::uint32_t>(digit) & 0xffu) << (8 * place);
    weight = (weight - digit) / 256;
  }
}

}  // namespace

std::vector<Quad> make_quads(std::span<const std::int32_t> weights, std::size_t zeros) {
  std::vector<Quad> quads((zeros + weights.size() + four - 1) / four);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    add_weight(quads[(zeros + i) / four], (zeros + i) % four, weights[i]);
  }
  return quads;
}

QuadRuns::QuadRuns(const AxisWeights& weights, std::uint32_t origin) {
  starts_.reserve(weights.size());
  quads_.reserve(weights.size() * (weights.max_run() / four + 2));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::size_t start = weights.run(i).start - origin;
    const std::vector<Quad> quads = make_quads(weights.weights(i), start % four);
    starts_.push_back({start / four, quads_.size(), quads.size()});
    quads_.insert(quads_.end(), quads.begin(), quads.end());
  }
}

}  // namespace vitrove
