// SlotQueue: a FIFO of slots that can leave from anywhere, linked through a table that several
// queues share (a slot stands in at most one of them).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vitrove/eviction_policy.h"

namespace vitrove {

struct SlotLinks {
  PolicySlot older = 0;
  PolicySlot newer = 0;
};

class SlotQueue {
 public:
  explicit SlotQueue(std::vector<SlotLinks>& links) : links_(links) {}

  bool empty() const { return count_ == 0; }
  std::size_t count() const { return count_; }
  std::uint64_t bytes() const { return bytes_; }
  PolicySlot oldest() const { return oldest_; }

  void push(PolicySlot slot, std::uint64_t bytes) {
    links_[slot] = {newest_, nil};
    (newest_ == nil ? oldest_ : links_[newest_].newer) = slot;
    newest_ = slot;
    ++count_;
    bytes_ += bytes;
  }

  void remove(PolicySlot slot, std::uint64_t bytes) {
    const SlotLinks at = links_[slot];
    (at.older == nil ? oldest_ : links_[at.older].newer) = at.newer;
    (at.newer == nil ? newest_ : links_[at.newer].older) = at.older;
    --count_;
    bytes_ -= bytes;
  }

 private:
  static constexpr PolicySlot nil = ~PolicySlot{0};

  std::vector<SlotLinks>& links_;
  PolicySlot oldest_ = nil;
  PolicySlot newest_ = nil;
  std::size_t count_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace vitrove
