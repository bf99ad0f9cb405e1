// GDSF: Greedy-Dual-Size-Frequency (Cherkasova: "Improving WWW Proxies Performance with
// Greedy-Dual-Size-Frequency Caching Policy", HP Laboratories 1998).
//
// The entry with the least  age + uses * cost / bytes  goes first: what keeps most encode time per
// byte of the pool stays. `age` is the priority of the last victim at the time of the entry's last
// use, so that what was once valuable does not stay for ever.
//
// One thing is ours: hits close together are one use (as the correlated references of LRU-K). A
// chat sends its pictures again with every turn; counting each turn would keep them long after the
// chat has ended, and then the plain algorithm does worse than LRU. "Close" is measured by age: a
// use counts when the entry has lived up half of what one use is worth. On requests that do not
// come in bursts this costs little (bench/bench_eviction.cpp has the figures).
//
// A hit reads the shared age, which changes only when something is evicted, and writes the slot's
// own line. Priorities only grow by hits, so the heap may hold old ones: what comes out on top with
// an outdated priority goes back in with its present one.
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
    const double now = age_.load(std::memory_order_relaxed);
    const double since = now - use.age.load(std::memory_order_relaxed);
    if (since >= use.value.load(std::memory_order_relaxed) / 2) {
      use.count.store(use.count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    use.age.store(now, std::memory_order_relaxed);
  }
  void prefetch(PolicySlot slot) const noexcept override { uses_.prefetch(slot); }
  void on_erase(PolicySlot slot) override;
  std::optional<PolicySlot> next_victim(const Take& take) override;
  std::optional<double> lowest_rank() override;
  void note_victim(double rank) override;

 private:
  struct alignas(32) Use {         // never in two cache lines
    std::atomic<double> value{0};  // cost / bytes
    std::atomic<double> age{0};
    std::atomic<std::uint32_t> count{0};
  };
  struct Entry {
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
