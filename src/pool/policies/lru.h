// LRU: the entry whose last access is oldest goes first.
//
// A hit stores the processor's cycle counter into the slot's stamp: two instructions, no shared
// cache line. A list moved on every hit, or one counter for all cores, would cost 50 to 100 ns and
// spoil scaling. The order is resolved when somebody evicts: a snapshot of the oldest sixteenth of
// all stamps is sorted into a queue, and the queue is served until it is used up. That is exact,
// not an approximation: stamps only grow, so an entry outside of the queue, or one hit or inserted
// since, is younger than every entry in the queue whose stamp is still what the snapshot saw.
// One snapshot of n entries is O(n) and serves n/16 evictions.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pool/policies/cycle_clock.h"
#include "pool/policies/slot_table.h"
#include "vitrove/eviction_policy.h"

namespace vitrove {

// `Clock::now()` must never go back on one thread. Tests bring one that counts.
template <class Clock = CycleClock>
class LruPolicy final : public EvictionPolicy {
 public:
  std::string_view name() const override { return "lru"; }

  void on_insert(PolicySlot slot, const PolicyItem&) override {
    stamps_.reach(slot);
    if (slot >= entries_.size())
      entries_.resize(std::max<std::size_t>(64, 2 * (std::size_t{slot} + 1)));
    entries_[slot].live = true;
    ++live_;
    on_hit(slot);
  }

  void on_hit(PolicySlot slot) noexcept override {
    stamps_[slot].store(Clock::now(), std::memory_order_relaxed);
  }

  void prefetch(PolicySlot slot) const noexcept override { stamps_.prefetch(slot); }

  void on_erase(PolicySlot slot) override {
    entries_[slot].live = false;
    --live_;
  }

  std::optional<PolicySlot> next_victim(const Take& take) override {
    ++round_;
    std::size_t offered = 0;
    for (bool complete = false;;) {
      refused_.clear();
      std::size_t at = head_;
      for (; at < queue_.size(); ++at) {
        const Candidate candidate = queue_[at];
        Entry& entry = entries_[candidate.slot];
        if (!entry.live) continue;
        // Hit since the snapshot: younger than the rest. In a complete snapshot there is no rest.
        if (!complete && stamp(candidate.slot) != candidate.stamp) continue;
        if (entry.offered_in != round_) {
          entry.offered_in = round_;
          ++offered;
          if (take(candidate.slot)) {
            keep_refused(at + 1);
            return candidate.slot;
          }
        }
        refused_.push_back(candidate);
      }
      keep_refused(at);
      if (complete || offered == live_) return std::nullopt;
      complete = take_snapshot(offered);
    }
  }

  // Its stamp. Where everybody is hit all the while, the oldest of a moment ago will do.
  std::optional<double> lowest_rank() override {
    if (live_ == 0) return std::nullopt;
    if (!skip_to_oldest()) {
      take_snapshot(0);
      if (!skip_to_oldest()) head_ = 0;
    }
    return static_cast<double>(queue_[head_].stamp);
  }

 private:
  struct Candidate {
    std::uint64_t stamp;
    PolicySlot slot;
    auto operator<=>(const Candidate&) const = default;
  };
  struct Entry {
    std::uint64_t offered_in = 0;
    bool live = false;
  };
  static constexpr std::size_t least_batch = 64;

  std::uint64_t stamp(PolicySlot slot) const {
    return stamps_[slot].load(std::memory_order_relaxed);
  }

  // False when the queue is used up.
  bool skip_to_oldest() {
    for (; head_ < queue_.size(); ++head_) {
      const Candidate& candidate = queue_[head_];
      if (entries_[candidate.slot].live && stamp(candidate.slot) == candidate.stamp) return true;
    }
    return false;
  }

  // The refused stay in front of the queue, in order; what was skipped on the way is forgotten.
  void keep_refused(std::size_t end) {
    head_ = end - refused_.size();
    std::copy(refused_.begin(), refused_.end(),
              queue_.begin() + static_cast<std::ptrdiff_t>(head_));
  }

  // True when the queue then holds every entry. Grows with what was refused already, so that a long
  // row of pinned entries costs a few snapshots and not one a batch.
  bool take_snapshot(std::size_t offered) {
    queue_.clear();
    head_ = 0;
    for (std::size_t slot = 0; slot < entries_.size(); ++slot) {
      const auto id = static_cast<PolicySlot>(slot);
      if (entries_[slot].live) queue_.push_back({stamp(id), id});
    }
    const std::size_t batch = std::max({least_batch, live_ / 16, 4 * offered});
    const bool complete = batch >= queue_.size();
    if (!complete) {
      const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(batch);
      std::nth_element(queue_.begin(), end, queue_.end());
      queue_.erase(end, queue_.end());
    }
    std::sort(queue_.begin(), queue_.end());
    return complete;
  }

  SlotTable<std::atomic<std::uint64_t>> stamps_;
  std::vector<Entry> entries_;
  std::size_t live_ = 0;
  std::uint64_t round_ = 0;
  std::vector<Candidate> queue_;  // oldest first, from head_ on
  std::size_t head_ = 0;
  std::vector<Candidate> refused_;
};

}  // namespace vitrove
