// SlotGate: lets at most so many holders in at a time (decoding is bounded by cores, not by
// requests). Who waits is let in by rank, the lowest first, whatever woke up when: nobody is passed
// by one that came later. Waiting ends with a slot, the deadline or the stop.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <stop_token>
#include <utility>

#include "base/stoppable_wait.h"
#include "vitrove/error.h"

namespace vitrove {

class SlotGate {
 public:
  // Of those with the same, the first to come is the first.
  using Rank = std::uint64_t;

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
  Slot enter(Rank rank, std::chrono::steady_clock::time_point deadline,
             const std::stop_token& cancel) {
    std::unique_lock lock(mutex_);
    if (cancel.stop_requested()) throw_cancelled();
    if (free_ > 0) {  // so nobody waits
      --free_;
      return Slot(*this);
    }
    Waiter self;
    const auto place = line_.emplace(rank, &self);
    wait_until(self.called, lock, cancel, deadline, [&self] { return self.has_slot; });
    if (!self.has_slot) line_.erase(place);
    if (cancel.stop_requested()) {
      if (self.has_slot) pass_on();
      throw_cancelled();
    }
    if (!self.has_slot) throw Error(ErrorCode::deadline_exceeded, "the request took too long");
    return Slot(*this);
  }

  std::size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return line_.size();
  }

 private:
  struct Waiter {
    std::condition_variable_any called;
    bool has_slot = false;
  };

  [[noreturn]] static void throw_cancelled() {
    throw Error(ErrorCode::cancelled, "the request was cancelled");
  }

  void give_back() {
    const std::lock_guard lock(mutex_);
    pass_on();
  }

  // Under the mutex. The slot is the waiter's from here on, awake or not.
  void pass_on() {
    if (line_.empty()) {
      ++free_;
      return;
    }
    Waiter& next = *line_.begin()->second;
    line_.erase(line_.begin());
    next.has_slot = true;
    next.called.notify_one();
  }

  mutable std::mutex mutex_;
  std::multimap<Rank, Waiter*> line_;
  std::size_t free_;
};

}  // namespace vitrove
