// Counters of one operation of one store: results by key, reasons, a histogram of call times.
// Thread-safe; not on the hit path.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "vitrove/embedding_cache_controller.h"
#include "vitrove/embedding_store.h"

namespace vitrove {

class OpStats {
 public:
  OpStats();

  // A call that ended, with the bytes that its `ok` results moved.
  void record(std::span<const StoreResult> results, std::uint64_t bytes,
              std::chrono::steady_clock::duration took);
  // Keys that were not asked for, or not answered in time.
  void record_faults(std::uint64_t keys, const std::string& reason);
  // Keys whose asker left before the answer: no fault of the store.
  void record_cancelled(std::uint64_t keys);

  StoreOpStats snapshot() const;

 private:
  void count(const StoreResult& result);

  mutable std::mutex mutex_;
  StoreOpStats totals_;
  std::map<std::string, std::uint64_t> reasons_;
};

// "EIO" where there is an errno, else the status in words.
std::string reason_of(const StoreResult& result);

}  // namespace vitrove
