// EvictionPolicy: which READY, unpinned entry goes next (design section 6).
//
// A policy sees entries as opaque slots with a size and a cost; it never touches pages, pins or
// locks. The controller calls `on_hit` on the hit path, so it must be a few instructions and safe
// from any thread at once with every other call; `on_insert`, `on_erase` and `next_victim` are
// called under the controller's eviction mutex.
//
// `next_victim` offers slots, best victim first; the controller refuses a pinned one and asks
// again, and after `is_last_offer` gives up. One file an algorithm in src/pool/policies/.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "vitrove/types.h"

namespace vitrove {

using PolicySlot = std::uint32_t;

struct PolicyItem {
  std::uint64_t key_hash = 0;  // for ghosts: first eight bytes of the key's digest
  std::uint64_t bytes = 0;
  std::uint64_t cost_us = 0;  // encode time a hit saves
  Modality modality = Modality::image;
};

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;
  virtual std::string_view name() const = 0;

  virtual void on_insert(PolicySlot slot, const PolicyItem& item) = 0;
  virtual void on_hit(PolicySlot slot) noexcept = 0;
  virtual void on_erase(PolicySlot slot) = 0;  // evicted or removed
  // A hit on `slot` may follow at once: starts loading what on_hit() touches. As cheap as that, and
  // harmless for any slot.
  virtual void prefetch(PolicySlot slot) const noexcept = 0;

  // Walks candidates, best victim first, until `take` answers true (taken: the policy then expects
  // on_erase) or every entry was offered once. Returns the taken slot.
  virtual std::optional<PolicySlot> next_victim(const std::function<bool(PolicySlot)>& take) = 0;
};

// "lru", "s3fifo" or "gdsf" (cost-aware: keeps what saves most encode time per byte); throws
// Error{invalid_argument} listing the known names.
std::unique_ptr<EvictionPolicy> make_eviction_policy(std::string_view name);
std::vector<std::string_view> eviction_policies();

}  // namespace vitrove
