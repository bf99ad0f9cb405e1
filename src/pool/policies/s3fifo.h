// S3-FIFO: three static queues (Yang, Zhang, Qiu, Yue, Rashmi: "FIFO Queues are All You Need for
// Cache Eviction", SOSP 2023).
//
// New entries enter a small queue of a tenth of the bytes; those hit more than once there move to
// the main queue, the rest leave early and are remembered as ghosts. A ghost that comes back enters
// the main queue, which gives entries hit since their last turn another turn. A hit raises a
// counter that stops at three: most hits on a popular entry only read.
//
// The capacity is taken to be the bytes that are held when something must go. An entry that is
// refused (pinned) is in use and treated as hit.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "pool/policies/ghost_list.h"
#include "pool/policies/slot_queue.h"
#include "pool/policies/slot_table.h"
#include "vitrove/eviction_policy.h"

namespace vitrove {

class S3FifoPolicy final : public EvictionPolicy {
 public:
  std::string_view name() const override { return "s3fifo"; }

  void on_insert(PolicySlot slot, const PolicyItem& item) override;
  void on_hit(PolicySlot slot) noexcept override {
    auto& hits = hits_[slot];
    const std::uint8_t seen = hits.load(std::memory_order_relaxed);
    if (seen < most_hits)
      hits.store(static_cast<std::uint8_t>(seen + 1), std::memory_order_relaxed);
  }
  void prefetch(PolicySlot slot) const noexcept override { hits_.prefetch(slot); }
  void on_erase(PolicySlot slot) override;
  std::optional<PolicySlot> next_victim(const Take& take) override;
  std::optional<double> lowest_rank() override;

 private:
  static constexpr std::uint8_t most_hits = 3;
  static constexpr std::uint8_t hits_to_stay = 2;
  static constexpr std::uint64_t small_share = 10;  // one part in ten of the bytes

  enum class Place : std::uint8_t { nowhere, small, main };
  struct Entry {
    std::uint64_t key_hash = 0;
    std::uint64_t bytes = 0;
    std::uint64_t offered_in = 0;
    std::uint64_t queued_at = 0;
    Place place = Place::nowhere;
  };

  SlotQueue& queue_of(Place place) { return place == Place::small ? small_ : main_; }
  bool small_is_full() const;
  void move_to(PolicySlot slot, Place place);
  bool deserves_to_stay(PolicySlot slot);

  SlotTable<std::atomic<std::uint8_t>> hits_;
  std::vector<Entry> entries_;
  std::vector<SlotLinks> links_;
  SlotQueue small_{links_};
  SlotQueue main_{links_};
  GhostList ghosts_;
  std::uint64_t round_ = 0;
};

}  // namespace vitrove
