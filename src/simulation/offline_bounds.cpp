#include "simulation/offline_bounds.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace vitrove::simulation {
namespace {

// Bytes in use over time: add to a range, ask for the maximum of a range.
class UseOverTime {
 public:
  explicit UseOverTime(std::size_t length) {
    while (leaves_ < length) leaves_ *= 2;
    added_.resize(2 * leaves_);
    highest_.resize(2 * leaves_);
  }

  void add(std::size_t begin, std::size_t end, double bytes) {
    add(1, 0, leaves_, begin, end, bytes);
  }
  double highest(std::size_t begin, std::size_t end) const {
    return highest(1, 0, leaves_, begin, end);
  }

 private:
  void add(std::size_t node, std::size_t low, std::size_t high, std::size_t begin, std::size_t end,
           double bytes) {
    if (end <= low || high <= begin) return;
    if (begin <= low && high <= end) {
      added_[node] += bytes;
      highest_[node] += bytes;
      return;
    }
    const std::size_t middle = (low + high) / 2;
    add(2 * node, low, middle, begin, end, bytes);
    add(2 * node + 1, middle, high, begin, end, bytes);
    highest_[node] = added_[node] + std::max(highest_[2 * node], highest_[2 * node + 1]);
  }

  double highest(std::size_t node, std::size_t low, std::size_t high, std::size_t begin,
                 std::size_t end) const {
    if (end <= low || high <= begin) return 0;
    if (begin <= low && high <= end) return highest_[node];
    const std::size_t middle = (low + high) / 2;
    return added_[node] + std::max(highest(2 * node, low, middle, begin, end),
                                   highest(2 * node + 1, middle, high, begin, end));
  }

  std::size_t leaves_ = 1;
  std::vector<double> added_;
  std::vector<double> highest_;
};

// Between two requests for the same media.
struct Interval {
  std::size_t begin;
  std::size_t end;
  double bytes;
  double cost_us;
  double space_time() const { return bytes * static_cast<double>(end - begin); }
};

std::vector<Interval> best_first(const Trace& trace) {
  std::vector<Interval> intervals;
  std::unordered_map<std::uint64_t, std::size_t> last;
  for (std::size_t at = 0; at < trace.size(); ++at) {
    const auto [found, is_new] = last.try_emplace(trace[at].key, at);
    if (is_new) continue;
    intervals.push_back({found->second, at, static_cast<double>(trace[at].bytes),
                         static_cast<double>(trace[at].cost_us)});
    found->second = at;
  }
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) {
    return a.cost_us * b.space_time() > b.cost_us * a.space_time();
  });
  return intervals;
}

}  // namespace

OfflineBounds offline_bounds(const Trace& trace, std::uint64_t pool_bytes) {
  const std::vector<Interval> intervals = best_first(trace);
  OfflineBounds bounds;
  UseOverTime use(trace.size());
  const double room = static_cast<double>(pool_bytes);
  double left = room * static_cast<double>(trace.size());
  for (const Interval& interval : intervals) {
    if (interval.bytes > room) continue;
    // The last one is granted in part: a bound from above may be fractional.
    const double part = std::clamp(left / interval.space_time(), 0.0, 1.0);
    bounds.most_us += part * interval.cost_us;
    left -= part * interval.space_time();
    if (use.highest(interval.begin, interval.end) + interval.bytes > room) continue;
    use.add(interval.begin, interval.end, interval.bytes);
    bounds.least_us += interval.cost_us;
  }
  return bounds;
}

}  // namespace vitrove::simulation
