// StoreTiers: all tiers of a controller with their lanes and put queues, nearest first.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cache/put_pipeline.h"
#include "cache/store_loader.h"

namespace vitrove {

class StoreTiers {
 public:
  using Clock = LaneCall::Clock;

  StoreTiers(const std::shared_ptr<CacheCore>& core, const ControllerOptions& options,
             std::span<const std::shared_ptr<EmbeddingStore>> stores);

  std::size_t count() const { return reads_.size(); }
  bool empty() const { return reads_.empty(); }
  std::span<ReadTier> reads() { return reads_; }
  Tier& tier(std::size_t number) const { return *reads_[number].tier; }
  PutQueue& puts(std::size_t number) { return *puts_[number]; }

  // To the nearest `tiers`. A claim goes with the put of its tier. Leaf locks only: called under a
  // shard's lock.
  void put(const std::shared_ptr<PutValue>& value, std::size_t tiers, ClaimHold claim = {});
  // Puts until it is destroyed go together.
  std::vector<PutQueue::Gathering> gather_puts();
  void revoke(const std::function<bool(const PutValue&)>& which);

  bool wait_for_puts(Clock::time_point deadline);
  bool wait_idle(Clock::time_point deadline);
  // True when no call is left behind.
  bool shut_down(Clock::time_point bound);

  std::vector<StoreStats> stats() const;
  std::uint64_t quarantined_bytes() const;
  std::uint64_t puts_dropped() const;
  std::uint64_t puts_skipped() const;

 private:
  const bool never_puts_;
  std::vector<ReadTier> reads_;
  std::vector<std::unique_ptr<PutQueue>> puts_;
  std::atomic<std::uint64_t> unstaged_{0};  // puts for which there was no staging
};

}  // namespace vitrove
