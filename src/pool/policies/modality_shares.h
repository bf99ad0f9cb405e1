// ModalityShares: any policy, with least and most shares of the pool for modalities. What they
// promise stands in eviction_policy.h.
//
// Each modality has a policy of its own, so that one whose entries may not go costs nobody a walk
// past them. Which of several goes first is told by the rank of their first candidates: with lru
// and gdsf the order is that of one policy over all entries; with s3fifo it is by how long the
// candidates have stood in their queues.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "pool/policies/slot_table.h"
#include "vitrove/eviction_policy.h"

namespace vitrove {

class ModalityShares final : public EvictionPolicy {
 public:
  // Throws Error{invalid_argument} as make_eviction_policy() says.
  ModalityShares(std::string_view policy, std::span<const ModalityShare> shares,
                 std::uint64_t pool_bytes);

  std::string_view name() const override { return parts_.front().policy->name(); }

  void on_insert(PolicySlot slot, const PolicyItem& item) override;
  void on_hit(PolicySlot slot) noexcept override {
    parts_[part_of_[slot].load(std::memory_order_relaxed)].policy->on_hit(slot);
  }
  void on_erase(PolicySlot slot) override;
  // What a hit touches lies in the table of one policy, and which is known only by another load.
  void prefetch(PolicySlot slot) const noexcept override { part_of_.prefetch(slot); }

  std::optional<PolicySlot> next_victim(const Take& take) override {
    return next_victim_for({}, take);
  }
  std::optional<PolicySlot> next_victim_for(const RoomWanted& wanted, const Take& take) override;
  bool may_go_for(PolicySlot slot, const RoomWanted& wanted) const override;
  std::uint64_t bytes_that_go_for(const RoomWanted& wanted) const override;
  std::vector<PolicySlot> that_stay(std::span<const PolicySlot> slots,
                                    const RoomWanted& wanted) const override;
  std::optional<double> lowest_rank() override;
  void note_victim(double rank) override;

 private:
  // Modality values run from 1 to 3; part 0 takes what has none.
  static constexpr std::size_t part_count = 4;
  struct Part {
    std::unique_ptr<EvictionPolicy> policy;
    std::uint64_t least = 0;  // bytes
    std::uint64_t most = ~std::uint64_t{0};
    std::uint64_t bytes = 0;
  };

  static std::size_t part_for(Modality modality) { return static_cast<std::size_t>(modality) & 3; }
  bool keeps_to_itself(const RoomWanted& wanted) const;
  bool may_go_for(const Part& part, const RoomWanted& wanted) const;
  // Bytes of a part that can go without leaving it less than its least share.
  std::uint64_t spare(const Part& part, const RoomWanted& wanted) const;
  Part* first_to_give(std::span<Part* const> parts) const;

  std::array<Part, part_count> parts_;
  SlotTable<std::atomic<std::uint8_t>> part_of_;
  std::vector<std::uint64_t> bytes_of_;  // by slot
};

}  // namespace vitrove
