// EntrySlab: type-stable memory for entries. An entry that was freed is used again, and its memory
// stays an Entry until the slab ends, so that a reader without a lock may look at the count of one
// that is gone (entry.h). An entry's place in the slab is its eviction policy slot.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "cache/entry.h"
#include "pool/policies/slot_table.h"

namespace vitrove {

class EntrySlab {
 public:
  // A free entry with empty details; the caller makes it private.
  Entry& take() {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      Entry& entry = entries_[free_.back()];
      free_.pop_back();
      return entry;
    }
    const PolicySlot slot = next_.load(std::memory_order_relaxed);
    entries_.reach(slot);
    // So that giving back never allocates.
    if (free_.capacity() <= slot) free_.reserve(2 * (std::size_t{slot} + 1));
    Entry& entry = entries_[slot];
    entry.slot = slot;
    next_.store(slot + 1, std::memory_order_release);
    return entry;
  }

  void give_back(Entry& entry) noexcept {
    std::lock_guard lock(mutex_);
    free_.push_back(entry.slot);
  }

  Entry& operator[](PolicySlot slot) { return entries_[slot]; }
  const Entry& operator[](PolicySlot slot) const { return entries_[slot]; }
  // Slots [0, reach) have been used at some time.
  PolicySlot reach() const { return next_.load(std::memory_order_acquire); }

 private:
  std::mutex mutex_;
  SlotTable<Entry> entries_;
  std::vector<PolicySlot> free_;
  std::atomic<PolicySlot> next_{0};
};

}  // namespace vitrove
