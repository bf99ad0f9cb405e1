// SendPace: when a reply that is being sent has to be given up. Each stretch of the stall timeout
// must move a little more than a byte or two: a client that takes one now and then would pin its
// rows for as long as it likes.
//
// What counts is what the client's side has acknowledged, and not what our kernel took: its buffer
// may hold megabytes, and has room again only when a good part of it is through, which for a slow
// but honest reader takes longer than the timeout.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

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

  // Of a new reply.
  void begin(Clock::time_point now) {
    taken_.reset();
    due_ = now + stall_timeout_;
  }
  // `taken`: bytes that the client has acknowledged on this connection so far.
  void look(std::uint64_t taken, Clock::time_point now) {
    if (taken_ && taken - *taken_ < least_) return;
    taken_ = taken;
    due_ = now + stall_timeout_;
  }
  Clock::time_point due() const { return due_; }

 private:
  static constexpr std::uint64_t least_bytes_per_second = 256;

  std::chrono::microseconds stall_timeout_;
  std::uint64_t least_;
  std::optional<std::uint64_t> taken_;  // when this stretch began
  Clock::time_point due_;
};

}  // namespace vitrove
