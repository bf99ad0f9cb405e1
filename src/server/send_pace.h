// SendPace: when a reply that is being sent has to be given up. Each stretch of the stall timeout
// must move a little more than a byte or two: a client that takes one now and then would pin its
// rows for as long as it likes.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace vitrove {

class SendPace {
 public:
  using Clock = std::chrono::steady_clock;

  explicit SendPace(std::chrono::microseconds stall_timeout)
      : stall_timeout_(stall_timeout),
        least_(std::max<std::uint64_t>(
            1, least_bytes_per_second *
                   static_cast<std::uint64_t>(
                       std::chrono::floor<std::chrono::seconds>(stall_timeout).count()))) {}

  void begin(Clock::time_point now) {
    moved_ = 0;
    due_ = now + stall_timeout_;
  }
  void sent(std::uint64_t bytes, Clock::time_point now) {
    moved_ += bytes;
    if (moved_ >= least_) begin(now);
  }
  Clock::time_point due() const { return due_; }

 private:
  static constexpr std::uint64_t least_bytes_per_second = 1024;

  std::chrono::microseconds stall_timeout_;
  std::uint64_t least_;
  std::uint64_t moved_ = 0;
  Clock::time_point due_;
};

}  // namespace vitrove
