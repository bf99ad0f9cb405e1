// Breaker: keeps calls away from a store that does nothing but fail.
//
// Closed until `faults` visits in a row were faults; then open for `pause`; then half open: one
// visit goes through as a trial, and its verdict closes or opens again. A trial that never reports
// (its caller left) is followed by another after a further pause. Thread-safe; not on the hit path.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace vitrove {

class Breaker {
 public:
  using Clock = std::chrono::steady_clock;

  Breaker(std::uint32_t faults, Clock::duration pause)
      : limit_(std::max(1U, faults)), pause_(pause) {}

  // Whether a visit may be made now. Who is let in makes one and reports how it went; a trial had
  // better be one that nobody waits for.
  enum class Admission : std::uint8_t { refused, granted, trial };
  Admission admit(Clock::time_point now) {
    std::lock_guard lock(mutex_);
    if (faults_ < limit_) return Admission::granted;
    if (now < next_trial_) return Admission::refused;
    next_trial_ = now + pause_;
    return Admission::trial;
  }

  // True when this closed the breaker.
  bool succeeded() {
    std::lock_guard lock(mutex_);
    const bool was_open = faults_ >= limit_;
    faults_ = 0;
    return was_open;
  }

  // True when this opened the breaker.
  bool failed(Clock::time_point now) {
    std::lock_guard lock(mutex_);
    if (faults_ < limit_) ++faults_;
    if (faults_ < limit_) return false;
    const bool opens = next_trial_ <= now;
    next_trial_ = now + pause_;
    return opens;
  }

  bool is_open() const {
    std::lock_guard lock(mutex_);
    return faults_ >= limit_;
  }

 private:
  const std::uint32_t limit_;
  const Clock::duration pause_;
  mutable std::mutex mutex_;
  std::uint32_t faults_ = 0;
  Clock::time_point next_trial_{};
};

}  // namespace vitrove
