// Gate: a latch that a test opens and closes, so that "while this call hangs" needs no sleep.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace vitrove::testing {

class Gate {
 public:
  explicit Gate(bool open = true) : open_(open) {}
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void close() {
    std::lock_guard lock(mutex_);
    open_ = false;
  }

  void open() {
    {
      std::lock_guard lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }

  // Blocks while the gate is closed.
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    --waiting_;
  }

  // True once `count` calls stand at the closed gate; false when that takes too long.
  [[nodiscard]] bool wait_for_waiting(std::size_t count,
                                      std::chrono::seconds patience = std::chrono::seconds(60)) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return waiting_ >= count; });
  }

  // True once `count` calls in all have come by, whether they had to wait or not.
  [[nodiscard]] bool wait_for_arrived(std::size_t count,
                                      std::chrono::seconds patience = std::chrono::seconds(60)) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return arrived_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t waiting_ = 0;
  std::size_t arrived_ = 0;
  bool open_;
};

}  // namespace vitrove::testing
