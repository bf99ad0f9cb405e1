// LookupBudget: the one deadline that all store lookups of an item share, over all tiers, existence
// checks, gets, aliases and the second look by features (design section 6): a fixed time, plus what
// the bytes need at the least bandwidth that is put up with.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace vitrove {

class LookupBudget {
 public:
  using Clock = std::chrono::steady_clock;

  // `spent`: what earlier lookups of the item have used of it.
  LookupBudget(std::chrono::microseconds time, std::uint64_t min_bandwidth,
               Clock::time_point request_deadline, Clock::duration spent = {})
      : time_(time),
        start_(Clock::now()),
        deadline_(start_ + time - spent),
        bandwidth_(std::max<std::uint64_t>(1, min_bandwidth)),
        request_deadline_(request_deadline) {}

  // The same time, from now on, for somebody who belongs to no request.
  LookupBudget anew() const { return {time_, bandwidth_, Clock::time_point::max()}; }

  void allow_for(std::uint64_t bytes) {
    deadline_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
        static_cast<double>(bytes) / static_cast<double>(bandwidth_)));
  }

  // When a store call should be back, and when its waiter goes in any case.
  Clock::time_point store_deadline() const { return deadline_; }
  Clock::time_point wait_deadline() const { return std::min(deadline_, request_deadline_); }
  bool used_up() const { return Clock::now() >= wait_deadline(); }
  Clock::duration spent() const { return Clock::now() - start_; }

 private:
  std::chrono::microseconds time_;
  Clock::time_point start_;
  Clock::time_point deadline_;
  std::uint64_t bandwidth_;
  Clock::time_point request_deadline_;
};

}  // namespace vitrove
