// FlushLog: which flushes came after a moment. A fill remembers the moment it started at, and is
// not published once a flush that covers it came later.
//
// Why this is race-free: who publishes asks under the lock of the key's shard, and who flushes
// records first and then sweeps the shards, each under its lock. Whichever of the two holds the
// shard's lock last knows of the other.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "vitrove/digest.h"
#include "vitrove/embedding_cache_controller.h"

namespace vitrove {

class FlushLog {
 public:
  enum class Side : std::uint8_t { pool, stores };
  using Moment = std::uint64_t;

  Moment now() const noexcept { return latest_.load(std::memory_order_acquire); }

  // `model` empty: every model's.
  void record(FlushScope scope, const std::optional<Digest256>& model) {
    std::lock_guard lock(mutex_);
    const Moment moment = latest_.load(std::memory_order_relaxed) + 1;
    if (scope != FlushScope::store) last(Side::pool, model) = moment;
    if (scope != FlushScope::local) last(Side::stores, model) = moment;
    latest_.store(moment, std::memory_order_release);
  }

  bool flushed_since(Moment moment, const Digest256& model, Side side) const {
    if (now() == moment) return false;
    std::lock_guard lock(mutex_);
    const Sides& sides = sides_[static_cast<std::size_t>(side)];
    if (sides.everything > moment) return true;
    const auto found = sides.by_model.find(model);
    return found != sides.by_model.end() && found->second > moment;
  }

 private:
  struct Sides {
    Moment everything = 0;
    std::unordered_map<Digest256, Moment> by_model;
  };

  Moment& last(Side side, const std::optional<Digest256>& model) {
    Sides& sides = sides_[static_cast<std::size_t>(side)];
    return model ? sides.by_model[*model] : sides.everything;
  }

  mutable std::mutex mutex_;
  std::array<Sides, 2> sides_;
  std::atomic<Moment> latest_{0};
};

}  // namespace vitrove
