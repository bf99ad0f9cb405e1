// A mutex with a deadline. std::timed_mutex locks by a call that GCC 12's ThreadSanitizer does not
// know, which hides real races behind false ones.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace vitrove::file {

// For std::unique_lock and std::lock_guard.
class PatientMutex {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [this] { return !is_held_; });
    is_held_ = true;
  }

  bool try_lock_until(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    if (!freed_.wait_until(lock, deadline, [this] { return !is_held_; })) return false;
    is_held_ = true;
    return true;
  }

  void unlock() {
    {
      std::lock_guard lock(mutex_);
      is_held_ = false;
    }
    freed_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  bool is_held_ = false;
};

}  // namespace vitrove::file
