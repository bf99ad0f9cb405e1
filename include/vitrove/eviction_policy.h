// EvictionPolicy: which READY, unpinned entry goes next (design section 6).
//
// A policy sees entries as opaque slots with a size and a cost; it never touches pages, pins or
// locks. The controller calls `on_hit` on the hit path, so it must be a few instructions and safe
// from any thread at once with every other call; `on_insert`, `on_erase` and `next_victim` are
// called under the controller's eviction mutex.
//
// `next_victim` offers slots, best victim first, until one is taken; the controller refuses those
// that are pinned. One file an algorithm in src/pool/policies/.
//
// Shares: with any policy, a modality can be promised a part of the pool (`least`) and be held to
// one (`most`). They say who goes when something has to; free pages are anybody's, so that no page
// is kept idle for a modality that is not used. When room is made for an item of modality M:
//  - a modality at or below its least share loses nothing for an item of another one;
//  - while others stand above their most share, theirs go first, of the furthest above first;
//  - when the item would put M above its own most share, only entries of M go;
//  - else the policy's order decides among all that may go. M's own always may.
// Shares count the pages of READY entries, by the size of the pool. So an item that finds no free
// room and nobody who may go for it is returned uncached.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
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

// What room is made for. Without a modality (a value of which nothing is known yet) no most share
// is looked at.
struct RoomWanted {
  std::optional<Modality> modality;
  std::uint64_t bytes = 0;
};

class EvictionPolicy {
 public:
  using Take = std::function<bool(PolicySlot)>;

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
  virtual std::optional<PolicySlot> next_victim(const Take& take) = 0;

  // The same among those that may go for `wanted`, and whether one may: without shares, all.
  virtual std::optional<PolicySlot> next_victim_for(const RoomWanted&, const Take& take) {
    return next_victim(take);
  }
  virtual bool may_go_for(PolicySlot, const RoomWanted&) const { return true; }

  // Who may go now may have to stay once others went. So, before anybody goes: how many bytes will
  // go for `wanted` if they are needed and nobody is in use (short by one entry a modality at
  // most), and which of `slots` have to stay if the others go.
  virtual std::uint64_t bytes_that_go_for(const RoomWanted&) const { return ~std::uint64_t{0}; }
  virtual std::vector<PolicySlot> that_stay(std::span<const PolicySlot> /*slots*/,
                                            const RoomWanted&) const {
    return {};
  }

  // To choose between policies of one name that share a pool: how the first candidate stands among
  // all of theirs (the lowest goes first; nothing without entries), and word of one that went
  // elsewhere.
  virtual std::optional<double> lowest_rank() = 0;
  virtual void note_victim(double /*rank*/) {}
};

// "lru", "s3fifo" or "gdsf" (cost-aware: keeps what saves most encode time per byte); throws
// Error{invalid_argument} listing the known names.
std::unique_ptr<EvictionPolicy> make_eviction_policy(std::string_view name);
std::vector<std::string_view> eviction_policies();

// Parts of the pool, 0 to 1.
struct ModalityShare {
  Modality modality = Modality::image;
  double least = 0;
  double most = 1;
};

// "image=0.2:0.8": at least a fifth, at most four fifths; "image=0.2:" and "image=:0.8" leave one
// bound open. Throws Error{invalid_argument}.
ModalityShare parse_modality_share(std::string_view text);

// With shares of a pool of `pool_bytes`; without any, the plain policy. Throws
// Error{invalid_argument} for an unknown name, parts beyond 0 to 1 or in the wrong order, a
// modality named twice, and least shares that together are more than the pool.
std::unique_ptr<EvictionPolicy> make_eviction_policy(std::string_view name,
                                                     std::span<const ModalityShare> shares,
                                                     std::uint64_t pool_bytes);

}  // namespace vitrove
