// Waiting for a condition until a deadline, or a stop.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace vitrove {

// The condition's last value. time_point::max() is no deadline: where the C library cannot wait on
// the steady clock, the wait with a deadline would overflow there.
template <typename Condition>
bool wait_until(std::condition_variable_any& changed, std::unique_lock<std::mutex>& lock,
                const std::stop_token& cancel, std::chrono::steady_clock::time_point deadline,
                Condition condition) {
  return deadline == std::chrono::steady_clock::time_point::max()
             ? changed.wait(lock, cancel, condition)
             : changed.wait_until(lock, cancel, deadline, condition);
}

}  // namespace vitrove
