#include "pool/policies/gdsf.h"

#include <algorithm>
#include <functional>

namespace vitrove {

void GdsfPolicy::on_insert(PolicySlot slot, const PolicyItem& item) {
  uses_.reach(slot);
  if (slot >= entries_.size()) {
    entries_.resize(std::max<std::size_t>(64, 2 * (std::size_t{slot} + 1)));
  }
  // Before anything is changed: afterwards nothing may fail.
  if (heap_.size() == heap_.capacity()) heap_.reserve(2 * heap_.size() + 64);
  Entry& entry = entries_[slot];
  ++entry.generation;
  entry.live = true;
  ++live_;
  // Costs and sizes that nobody told still leave a usable order.
  const double value = static_cast<double>(std::max<std::uint64_t>(item.cost_us, 1)) /
                       static_cast<double>(std::max<std::uint64_t>(item.bytes, 1));
  Use& use = uses_[slot];
  use.value.store(value, std::memory_order_relaxed);
  use.age.store(age_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  use.count.store(1, std::memory_order_relaxed);
  push({priority(slot), ++sequence_, slot, entry.generation});
}

void GdsfPolicy::on_erase(PolicySlot slot) {
  entries_[slot].live = false;
  --live_;
  // Its record is dropped when it comes up, or when such records outnumber the entries.
  if (heap_.size() > 2 * live_ + 64) refresh_all();
}

std::optional<PolicySlot> GdsfPolicy::next_victim(const Take& take) {
  // They come back on every path; there is room for them where they were.
  class Refused {
   public:
    explicit Refused(GdsfPolicy& policy) : policy_(policy) {}
    Refused(const Refused&) = delete;
    Refused& operator=(const Refused&) = delete;
    ~Refused() {
      for (const Candidate& candidate : list_) policy_.push(candidate);
    }
    void add(const Candidate& candidate) {
      try {
        list_.push_back(candidate);
      } catch (...) {
        policy_.push(candidate);
        throw;
      }
    }

   private:
    GdsfPolicy& policy_;
    std::vector<Candidate> list_;
  };
  Refused refused(*this);
  std::optional<PolicySlot> victim;
  std::size_t outdated = 0;
  const std::size_t enough = std::max<std::size_t>(64, live_ / 8);
  bool refreshed = false;
  while (!heap_.empty() && !victim) {
    Candidate candidate = pop();
    if (!is_current(candidate)) continue;
    const double now = priority(candidate.slot);
    if (now > candidate.priority && !refreshed) {
      candidate.priority = now;
      push(candidate);
      // Many hits since the last eviction: one pass over all is cheaper than one at a time. From
      // then on old priorities do, so that hits arriving now cannot keep an entry away for ever.
      if (++outdated < enough) continue;
      refresh_all();
      refreshed = true;
      continue;
    }
    if (take(candidate.slot)) {
      victim = candidate.slot;
      note_victim(candidate.priority);
    } else {
      refused.add(candidate);
    }
  }
  return victim;
}

// Its priority.
std::optional<double> GdsfPolicy::lowest_rank() {
  const std::size_t enough = std::max<std::size_t>(64, live_ / 8);
  for (std::size_t outdated = 0; !heap_.empty();) {
    if (!is_current(heap_.front())) {
      pop();
      continue;
    }
    const double now = priority(heap_.front().slot);
    if (now <= heap_.front().priority || outdated > enough) return heap_.front().priority;
    if (++outdated > enough) {
      refresh_all();
      continue;
    }
    Candidate candidate = pop();
    candidate.priority = now;
    push(candidate);
  }
  return std::nullopt;
}

void GdsfPolicy::note_victim(double rank) {
  if (rank > age_.load(std::memory_order_relaxed)) age_.store(rank, std::memory_order_relaxed);
}

double GdsfPolicy::priority(PolicySlot slot) const {
  const Use& use = uses_[slot];
  return use.age.load(std::memory_order_relaxed) +
         use.count.load(std::memory_order_relaxed) * use.value.load(std::memory_order_relaxed);
}

bool GdsfPolicy::is_current(const Candidate& candidate) const {
  const Entry& entry = entries_[candidate.slot];
  return entry.live && entry.generation == candidate.generation;
}

void GdsfPolicy::push(const Candidate& candidate) {
  heap_.push_back(candidate);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

GdsfPolicy::Candidate GdsfPolicy::pop() {
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
  const Candidate candidate = heap_.back();
  heap_.pop_back();
  return candidate;
}

void GdsfPolicy::refresh_all() {
  std::erase_if(heap_, [this](const Candidate& candidate) { return !is_current(candidate); });
  for (Candidate& candidate : heap_) candidate.priority = priority(candidate.slot);
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
}

}  // namespace vitrove
