#include "cache/op_stats.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace vitrove {
namespace {

constexpr std::array<double, 14> bounds{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                        0.025,  0.05,    0.1,    0.25,  1.0,    5.0,   30.0};

}  // namespace

std::span<const double> store_seconds_bounds() { return bounds; }

std::string reason_of(const StoreResult& result) {
  if (result.error_number != 0) {
    if (const char* name = strerrorname_np(result.error_number)) return name;
  }
  return std::string(to_string(result.status));
}

OpStats::OpStats() { totals_.seconds_buckets.resize(bounds.size() + 1); }

void OpStats::record(std::span<const StoreResult> results, std::uint64_t bytes,
                     std::chrono::steady_clock::duration took) {
  const double seconds = std::chrono::duration<double>(took).count();
  const auto bucket = std::ranges::lower_bound(bounds, seconds) - bounds.begin();
  std::lock_guard lock(mutex_);
  ++totals_.calls;
  totals_.bytes += bytes;
  totals_.seconds_sum += seconds;
  ++totals_.seconds_buckets[static_cast<std::size_t>(bucket)];
  for (const StoreResult& result : results) count(result);
}

void OpStats::record_faults(std::uint64_t keys, const std::string& reason) {
  if (keys == 0) return;
  std::lock_guard lock(mutex_);
  totals_.faults += keys;
  reasons_[reason] += keys;
}

void OpStats::record_cancelled(std::uint64_t keys) {
  std::lock_guard lock(mutex_);
  totals_.cancelled += keys;
}

void OpStats::count(const StoreResult& result) {
  if (result.status == StoreStatus::ok) {
    ++totals_.ok;
  } else if (result.status == StoreStatus::absent) {
    ++totals_.absent;
  } else if (result.status == StoreStatus::cancelled) {
    ++totals_.cancelled;
  } else {
    ++totals_.faults;
    ++reasons_[reason_of(result)];
  }
}

StoreOpStats OpStats::snapshot() const {
  std::lock_guard lock(mutex_);
  StoreOpStats snapshot = totals_;
  snapshot.reasons.assign(reasons_.begin(), reasons_.end());
  return snapshot;
}

}  // namespace vitrove
