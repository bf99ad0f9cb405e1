// Bounds on the encode time that any eviction policy could save on a trace, even one that knows the
// future (after Berger, Beckmann, Harchol-Balter: "Practical Bounds on Optimal Caching with
// Variable Object Sizes", SIGMETRICS 2018).
//
// To turn a request into a hit, its media must be held from the request before on: so many bytes
// for so long. Ordered by saving per byte and time, the intervals are granted
//   for the upper bound  until the pool's bytes times the length of the trace are used up, which
//                        lets the pool overflow for a while;
//   for the lower bound  where there is room all the while, which a policy could really do.
#pragma once

#include <cstdint>

#include "simulation/trace.h"

namespace vitrove::simulation {

struct OfflineBounds {
  double least_us = 0;
  double most_us = 0;
};

OfflineBounds offline_bounds(const Trace& trace, std::uint64_t pool_bytes);

}  // namespace vitrove::simulation
