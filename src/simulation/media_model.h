// MediaModel: how large embeddings of media are, and what encoding them costs, where a trace does
// not tell. Drawn once for each item from its number and a seed, so that the order of requests
// changes nothing.
//
//              tokens (evenly by magnitude)   bytes a token   µs to encode n tokens
//   picture    64 to 4096                     4096            3000 + 40 n (1 + n/8000)
//   video      1500 to 16000                  4096            300000 + 40 n (1 + n/8000)
//   sound      50 to 1500                     2560            5000 + 12 n (1 + n/8000)
//
// Tokens and row sizes lie in the range of today's vision towers; the square term is attention. 85
// % of the items are pictures, 5 % videos, 10 % sounds; or all of them pictures.
#pragma once

#include <cstdint>

#include "simulation/trace.h"

namespace vitrove::simulation {

// `magnitude`: 0 to 1, where between the fewest and the most tokens.
TraceRequest picture(std::uint64_t key, double magnitude);
TraceRequest video(std::uint64_t key, double magnitude);
TraceRequest sound(std::uint64_t key, double magnitude);

class MediaModel {
 public:
  enum class Mix : std::uint8_t { pictures, all };
  MediaModel(std::uint64_t seed, Mix mix) : seed_(seed), mix_(mix) {}

  TraceRequest item(std::uint64_t key) const;

 private:
  std::uint64_t seed_;
  Mix mix_;
};

}  // namespace vitrove::simulation
