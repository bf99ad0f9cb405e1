// FetchCosts: what getting a value out of a store takes, measured as it happens: exponentially
// weighted means of a call's latency and of the time a byte takes on top of it. Thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

namespace vitrove {

class FetchCosts {
 public:
  using Duration = std::chrono::duration<double, std::micro>;

  // A call that was answered, and how many bytes it brought.
  void note(std::uint64_t bytes, Duration took) {
    std::lock_guard lock(mutex_);
    if (bytes == 0) {
      move(latency_, took);
      return;
    }
    const Duration rest = std::max(Duration(0), took - latency_.value_or(Duration(0)));
    move(byte_, rest / static_cast<double>(bytes));
  }
  // Asking whether it is there, and getting it; nothing before the first value came.
  std::optional<Duration> expected(std::uint64_t bytes) const {
    std::lock_guard lock(mutex_);
    if (!byte_) return std::nullopt;
    return 2 * latency_.value_or(Duration(0)) + static_cast<double>(bytes) * *byte_;
  }

 private:
  static constexpr double weight = 1.0 / 16;

  static void move(std::optional<Duration>& mean, Duration sample) {
    mean = mean ? *mean + weight * (sample - *mean) : sample;
  }

  mutable std::mutex mutex_;
  std::optional<Duration> latency_;
  std::optional<Duration> byte_;
};

}  // namespace vitrove
