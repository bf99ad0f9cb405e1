// GDSF: Greedy-Dual-Size-Frequency (Cherkasova: "Improving WWW Proxies Performance with
// Greedy-Dual-Size-Frequency Caching Policy", HP Laboratories 1998).
//
// The entry with the least  age + uses * cost / bytes  goes first: what keeps most encode time per
// byte of the pool stays. `age` is the priority of the last victim at the time of the entry's last
// use, so that what was once valuable does not stay for ever.
//
// A hit raises the slot's use count and notes the age: a load and two stores in the slot's own
// line, and a read of a shared value that changes only when something is evicted. Priorities only
// grow by that, so the heap may hold old ones: what comes out on top with an outdated priority goes
// back in with its present one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pool/policies/slot_table.h"
#include "vitrove/eviction_policy.h"

namespace vitrove {

class GdsfPolicy final : public EvictionPolicy {
 public:
  std::string_view name() const override { return "gdsf"; }

  void on_insert(PolicySlot slot, const PolicyItem& item) override;
  void on_hit(PolicySlot slot) noexcept override {
    Use& use = uses_[slot];
    use.count.store(use.count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    use.age.store(age_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  void on_erase(PolicySlot slot) override;
  std::optional<PolicySlot> next_victim(const std::function<bool(PolicySlot)>& take) override;

 private:
  struct Use {
    std::atomic<std::uint64_t> count{0};
    std::atomic<double> age{0};
  };
  struct Entry {
    double value = 0;  // cost / bytes
    std::uint32_t generation = 0;
    bool live = false;
  };
  struct Candidate {
    double priority;
    std::uint64_t sequence;  // of equal priorities the older goes first
    PolicySlot slot;
    std::uint32_t generation;
    bool operator>(const Candidate& other) const {
      return priority != other.priority ? priority > other.priority : sequence > other.sequence;
    }
  };

  double priority(PolicySlot slot) const;
  bool is_current(const Candidate& candidate) const;
  void push(const Candidate& candidate);
  Candidate pop();
  void refresh_all();

  SlotTable<Use> uses_;
  std::atomic<double> age_{0};
  std::vector<Entry> entries_;
  std::vector<Candidate> heap_;  // smallest priority first; one record of each live entry
  std::uint64_t sequence_ = 0;
  std::size_t live_ = 0;
};

}  // namespace vitrove
