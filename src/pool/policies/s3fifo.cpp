#include "pool/policies/s3fifo.h"

#include <algorithm>
#include <cstddef>

#include "pool/policies/cycle_clock.h"

namespace vitrove {

void S3FifoPolicy::on_insert(PolicySlot slot, const PolicyItem& item) {
  hits_.reach(slot);
  if (slot >= entries_.size()) {
    const std::size_t count = std::max<std::size_t>(64, 2 * (std::size_t{slot} + 1));
    links_.resize(count);
    entries_.resize(count);  // last: what it has, all have
  }
  hits_[slot].store(0, std::memory_order_relaxed);
  const Place place = ghosts_.take(item.key_hash) ? Place::main : Place::small;
  entries_[slot] = {.key_hash = item.key_hash,
                    .bytes = item.bytes,
                    .queued_at = CycleClock::now(),
                    .place = place};
  queue_of(place).push(slot, item.bytes);
}

void S3FifoPolicy::on_erase(PolicySlot slot) {
  Entry& entry = entries_[slot];
  queue_of(entry.place).remove(slot, entry.bytes);
  entry.place = Place::nowhere;
}

std::optional<PolicySlot> S3FifoPolicy::next_victim(const Take& take) {
  ++round_;
  const std::size_t live = small_.count() + main_.count();
  std::size_t offered = 0;
  // Hits that arrive meanwhile could keep entries going round: after some rounds they count no
  // more.
  std::size_t turns = std::size_t{2} * most_hits * live;
  bool main_refuses = false;
  while (offered < live) {
    const bool from_small = !small_.empty() && (small_is_full() || main_refuses);
    const PolicySlot slot = from_small ? small_.oldest() : main_.oldest();
    Entry& entry = entries_[slot];
    const bool patient = turns > 0;
    if (patient) --turns;
    main_refuses = entry.offered_in == round_;
    if (main_refuses || (patient && deserves_to_stay(slot))) {
      move_to(slot, Place::main);
      continue;
    }
    entry.offered_in = round_;
    ++offered;
    if (take(slot)) {
      if (from_small) ghosts_.add(entry.key_hash);
      ghosts_.shrink_to(live);
      return slot;
    }
    move_to(slot, Place::main);
  }
  return std::nullopt;
}

bool S3FifoPolicy::small_is_full() const {
  return main_.empty() || small_.bytes() * small_share >= small_.bytes() + main_.bytes();
}

// Since when the first to be looked at has stood in its queue.
std::optional<double> S3FifoPolicy::lowest_rank() {
  if (small_.empty() && main_.empty()) return std::nullopt;
  const bool from_small = !small_.empty() && small_is_full();
  const PolicySlot slot = from_small ? small_.oldest() : main_.oldest();
  return static_cast<double>(entries_[slot].queued_at);
}

void S3FifoPolicy::move_to(PolicySlot slot, Place place) {
  Entry& entry = entries_[slot];
  entry.queued_at = CycleClock::now();
  queue_of(entry.place).remove(slot, entry.bytes);
  entry.place = place;
  queue_of(place).push(slot, entry.bytes);
}

// Uses the hits up: all of them when an entry leaves the small queue, one a turn in the main one.
bool S3FifoPolicy::deserves_to_stay(PolicySlot slot) {
  auto& hits = hits_[slot];
  const std::uint8_t seen = hits.load(std::memory_order_relaxed);
  if (entries_[slot].place == Place::small) {
    if (seen < hits_to_stay) return false;
    hits.store(0, std::memory_order_relaxed);
    return true;
  }
  if (seen == 0) return false;
  hits.store(static_cast<std::uint8_t>(seen - 1), std::memory_order_relaxed);
  return true;
}

}  // namespace vitrove
