#include "simulation/trace.h"

#include <unordered_set>

namespace vitrove::simulation {

TraceTotals totals_of(const Trace& trace) {
  TraceTotals totals;
  std::unordered_set<std::uint64_t> seen;
  for (const TraceRequest& request : trace) {
    totals.request_bytes += request.bytes;
    totals.cost_us += static_cast<double>(request.cost_us);
    if (seen.insert(request.key).second) totals.media_bytes += request.bytes;
  }
  totals.media = seen.size();
  return totals;
}

}  // namespace vitrove::simulation
