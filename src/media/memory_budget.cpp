#include "vitrove/memory_budget.h"

#include <algorithm>
#include <string>

#include "base/stoppable_wait.h"
#include "vitrove/error.h"

namespace vitrove {

MemoryBudget::MemoryBudget(std::uint64_t capacity_bytes) : capacity_(capacity_bytes) {}

std::uint64_t MemoryBudget::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

std::uint64_t MemoryBudget::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

MemoryLease MemoryBudget::acquire(std::uint64_t bytes,
                                  std::chrono::steady_clock::time_point deadline,
                                  std::stop_token cancel) {
  if (bytes > capacity_) {
    throw Error(ErrorCode::too_large, "decoding this item takes " + std::to_string(bytes) +
                                          " bytes of memory, which exceeds the limit of " +
                                          std::to_string(capacity_) + " bytes");
  }
  std::unique_lock lock(mutex_);
  const auto fits = [&] { return bytes <= capacity_ - used_; };
  const auto place = line_.insert(line_.end(), bytes);
  const auto my_turn = [&] { return place == line_.begin() && fits(); };
  const bool served = wait_until(changed_, lock, cancel, deadline, my_turn);
  line_.erase(place);
  if (!served) {
    // Whoever stood behind us may be first now.
    changed_.notify_all();
    if (cancel.stop_requested()) throw Error(ErrorCode::cancelled, "cancelled");
    throw Error(ErrorCode::unavailable, "too much media is being decoded: the limit is " +
                                            std::to_string(capacity_) +
                                            " bytes at a time, try again later");
  }
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  changed_.notify_all();
  return MemoryLease(this, bytes);
}

void MemoryBudget::give_back(std::uint64_t bytes) noexcept {
  {
    const std::lock_guard lock(mutex_);
    used_ -= bytes;
  }
  changed_.notify_all();
}

void MemoryLease::shrink_to(std::uint64_t bytes) noexcept {
  if (budget_ == nullptr || bytes >= bytes_) return;
  budget_->give_back(bytes_ - bytes);
  bytes_ = bytes;
}

}  // namespace vitrove
