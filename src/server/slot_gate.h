// SlotGate: lets at most so many holders in at a time (decoding is bounded by cores, not by
// requests). Waiting ends with a slot, the deadline or the stop.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <utility>

#include "base/stoppable_wait.h"
#include "vitrove/error.h"

namespace vitrove {

class SlotGate {
 public:
  explicit SlotGate(std::size_t slots) : free_(slots) {}

  class Slot {
   public:
    explicit Slot(SlotGate& gate) : gate_(&gate) {}
    Slot(Slot&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Slot& operator=(Slot&&) = delete;
    ~Slot() {
      if (gate_ != nullptr) gate_->give_back();
    }

   private:
    SlotGate* gate_;
  };

  // Throws Error{deadline_exceeded} or Error{cancelled}.
  Slot enter(std::chrono::steady_clock::time_point deadline, const std::stop_token& cancel) {
    std::unique_lock lock(mutex_);
    const bool entered = wait_until(freed_, lock, cancel, deadline, [this] { return free_ > 0; });
    if (cancel.stop_requested()) {
      if (entered) freed_.notify_one();  // the slot that woke us is for another
      throw Error(ErrorCode::cancelled, "the request was cancelled");
    }
    if (!entered) throw Error(ErrorCode::deadline_exceeded, "the request took too long");
    --free_;
    return Slot(*this);
  }

 private:
  void give_back() {
    {
      std::lock_guard lock(mutex_);
      ++free_;
    }
    freed_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable_any freed_;
  std::size_t free_;
};

}  // namespace vitrove
