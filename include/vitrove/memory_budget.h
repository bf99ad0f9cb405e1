// MemoryBudget: a bound on the bytes that all pictures being decoded, and what is made of them, may
// take together.
//
// Limits per picture (media.h) do not bound fifty large pictures at once (field case B83). So a
// decoder asks the budget for its peak need, known from the file's header, before it allocates (and
// for what preprocessing will need: a small picture may become a large tensor). Who
// does not get it waits in line, first come first served (a large picture is not starved by small
// ones), until its deadline, and is then answered with 503. A need beyond the whole budget is a 413
// at once. The lease travels with the picture and gives its bytes back when that is destroyed.
//
// Thread-safe. The budget must outlive its leases. A holder never asks for more while it holds a
// lease (it may only shrink it), so waiting cannot deadlock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <stop_token>
#include <utility>

namespace vitrove {

class MemoryLease;

class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t capacity_bytes);
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // Blocks until the bytes are there. Throws Error{too_large} when they never can be,
  // Error{unavailable} when they are not by the deadline, Error{cancelled} when stopped.
  MemoryLease acquire(std::uint64_t bytes, std::chrono::steady_clock::time_point deadline,
                      std::stop_token cancel = {});

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t used() const;
  std::uint64_t peak() const;  // highest use so far

 private:
  friend class MemoryLease;
  void give_back(std::uint64_t bytes) noexcept;

  const std::uint64_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::uint64_t used_ = 0;
  std::uint64_t peak_ = 0;
  std::list<std::uint64_t> line_;  // who waits, first come first; the value is the need
};

// Bytes of a budget in somebody's hands; empty by default. Movable.
class MemoryLease {
 public:
  MemoryLease() = default;
  MemoryLease(MemoryLease&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryLease& operator=(MemoryLease&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryLease() { shrink_to(0); }

  std::uint64_t bytes() const { return bytes_; }
  // Gives back what is beyond `bytes`; never grows.
  void shrink_to(std::uint64_t bytes) noexcept;

 private:
  friend class MemoryBudget;
  MemoryLease(MemoryBudget* budget, std::uint64_t bytes) : budget_(budget), bytes_(bytes) {}

  MemoryBudget* budget_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace vitrove
