// Bounds on what any eviction policy could save on a trace, even one that knows the future (after
// Berger, Beckmann, Harchol-Balter: "Practical Bounds on Optimal Caching with Variable Object
// Sizes", SIGMETRICS 2018).
//
// To turn a request into a hit, its media must be held from the request before on: so many bytes
// for so long. Ordered by saving per byte and time, the intervals are granted
//   for the upper bound  until the pool's bytes times the length of the trace are used up, which
//                        lets the pool overflow for a while;
//   for the lower bound  where there is room all the while, which a policy could really do.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "encode_trace.h"

namespace vitrove::bench {

struct OfflineBounds {
  double least_us = 0;
  double most_us = 0;
};

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

inline OfflineBounds offline_bounds(const Trace& trace, std::uint64_t capacity) {
  struct Interval {
    std::size_t begin;
    std::size_t end;
    double bytes;
    double cost_us;
    double space_time() const { return bytes * static_cast<double>(end - begin); }
  };
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

  OfflineBounds bounds;
  UseOverTime use(trace.size());
  const double room = static_cast<double>(capacity);
  double left = room * static_cast<double>(trace.size());
  for (const Interval& interval : intervals) {
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

}  // namespace vitrove::bench
