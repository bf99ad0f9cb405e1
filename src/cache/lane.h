// Lane: threads that make store calls, so that a store which hangs costs a lane thread and never a
// request.
//
// A LaneCall owns everything its store call touches. The caller shares it and waits elsewhere
// (CallGroup); when he gives up, the call keeps its buffers until the backend returns, however late
// (field case B33), and is then freed by the lane's thread: that is the quarantine. Threads are not
// replaced: a lane of n threads never has more than n calls in quarantine, and when all its threads
// are stuck in overdue calls it refuses new ones at once.
//
// Shutdown asks running calls to stop and waits for them for a bounded time; a thread that is still
// stuck then is left behind with the memory it needs (it shares the lane's state, its call owns the
// rest).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

namespace vitrove {

class LaneCall {
 public:
  using Clock = std::chrono::steady_clock;

  LaneCall() = default;
  virtual ~LaneCall() = default;
  LaneCall(const LaneCall&) = delete;
  LaneCall& operator=(const LaneCall&) = delete;

  // On a lane thread. `shutdown` is requested when the lane ends.
  virtual void run(const std::stop_token& shutdown) noexcept = 0;
  // The call will never run.
  virtual void dropped() noexcept {}

  // When the backend should be back, and what it holds meanwhile. May be set until run() starts the
  // backend.
  Clock::time_point deadline() const noexcept {
    return Clock::time_point(Clock::duration(deadline_.load(std::memory_order_relaxed)));
  }
  void set_deadline(Clock::time_point deadline) noexcept {
    deadline_.store(deadline.time_since_epoch().count(), std::memory_order_relaxed);
  }
  std::uint64_t bytes_held() const noexcept { return bytes_held_.load(std::memory_order_relaxed); }
  void set_bytes_held(std::uint64_t bytes) noexcept {
    bytes_held_.store(bytes, std::memory_order_relaxed);
  }
  bool is_overdue(Clock::time_point now) const noexcept { return now >= deadline(); }

 private:
  std::atomic<Clock::rep> deadline_{Clock::time_point::max().time_since_epoch().count()};
  std::atomic<std::uint64_t> bytes_held_{0};
};

class Lane {
 public:
  using Clock = LaneCall::Clock;

  struct Load {
    std::uint64_t queued = 0;
    std::uint64_t running = 0;
    std::uint64_t quarantined_bytes = 0;  // held by overdue calls
  };

  // Throws std::system_error when threads are not to be had.
  Lane(std::uint32_t threads, std::size_t max_queued);
  // As shut_down() with no patience.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // `stuck`: every thread is in an overdue call, or the lane has ended.
  enum class Submitted : std::uint8_t { yes, full, stuck };
  Submitted submit(std::shared_ptr<LaneCall> call);
  // True when the call had not started; it never will.
  bool withdraw(const std::shared_ptr<LaneCall>& call);

  Load load(Clock::time_point now) const;
  // True when nothing is queued or runs; false when the deadline came first.
  bool wait_idle(Clock::time_point deadline);

  // Drops what is queued, asks what runs to stop, and waits for it until it is overdue, at most
  // until `bound`. True when every thread ended. No submit() may run at the same time.
  bool shut_down(Clock::time_point bound);

 private:
  struct State;
  static void work(const std::shared_ptr<State>& state, std::size_t worker);

  std::shared_ptr<State> state_;
  std::vector<std::thread> threads_;
};

// Where a waiter hears that calls are back.
class CallGroup {
 public:
  using Clock = LaneCall::Clock;

  // On the lane thread, as the last thing a call does.
  void finished(std::size_t call) {
    {
      std::lock_guard lock(mutex_);
      finished_.push_back(call);
    }
    changed_.notify_all();
  }

  // The number of a call that is back; nothing when time is up or the wait was cancelled.
  std::optional<std::size_t> next(Clock::time_point deadline, const std::stop_token& cancel) {
    std::unique_lock lock(mutex_);
    const auto any = [this] { return !finished_.empty(); };
    if (!changed_.wait_until(lock, cancel, deadline, any)) return std::nullopt;
    const std::size_t call = finished_.front();
    finished_.pop_front();
    return call;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::size_t> finished_;
};

}  // namespace vitrove
