// A trace: who asks for which media, in order, how many bytes its embedding has, and what encoding
// it costs.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrove/types.h"

namespace vitrove::simulation {

struct TraceRequest {
  std::uint64_t key = 0;
  std::uint64_t bytes = 0;
  std::uint64_t cost_us = 0;
  Modality modality = Modality::image;
};
using Trace = std::vector<TraceRequest>;

struct TraceTotals {
  std::uint64_t media = 0;
  std::uint64_t media_bytes = 0;    // each once
  std::uint64_t request_bytes = 0;  // each as often as it is asked for
  double cost_us = 0;               // likewise
};
TraceTotals totals_of(const Trace& trace);

}  // namespace vitrove::simulation
