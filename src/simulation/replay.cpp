#include "simulation/replay.h"

namespace vitrove::simulation {

SimulatedCache::SimulatedCache(std::string_view policy, std::uint64_t pool_bytes,
                               std::span<const ModalityShare> shares)
    : policy_(make_eviction_policy(policy, shares, pool_bytes)), pool_bytes_(pool_bytes) {}

bool SimulatedCache::serve(const TraceRequest& request) {
  const auto found = slots_.find(request.key);
  if (found == slots_.end()) {
    if (make_room(request)) insert(request);
    return false;
  }
  policy_->on_hit(found->second);
  ++result_.hits;
  result_.hit_bytes += request.bytes;
  result_.saved_us += static_cast<double>(request.cost_us);
  return true;
}

bool SimulatedCache::make_room(const TraceRequest& request) {
  if (request.bytes > pool_bytes_) return false;
  const std::uint64_t free = pool_bytes_ - used_;
  const std::uint64_t going = policy_->bytes_that_go_for({request.modality, request.bytes});
  if (request.bytes > free && request.bytes - free > going) return false;  // nobody goes in vain
  while (used_ + request.bytes > pool_bytes_) {
    const auto victim = policy_->next_victim_for({request.modality, request.bytes},
                                                 [](PolicySlot) { return true; });
    if (!victim) return false;
    policy_->on_erase(*victim);
    ++result_.evictions;
    used_ -= held_[*victim].bytes;
    slots_.erase(held_[*victim].key);
    unused_.push_back(*victim);
  }
  return true;
}

void SimulatedCache::insert(const TraceRequest& request) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<PolicySlot>(held_.size()));
    held_.emplace_back();
  }
  const PolicySlot slot = unused_.back();
  unused_.pop_back();
  held_[slot] = {request.key, request.bytes};
  slots_.emplace(request.key, slot);
  used_ += request.bytes;
  policy_->on_insert(slot, {.key_hash = request.key * 0x9E3779B97F4A7C15U,
                            .bytes = request.bytes,
                            .cost_us = request.cost_us,
                            .modality = request.modality});
}

ReplayResult replay(const Trace& trace, std::string_view policy, std::uint64_t pool_bytes,
                    std::span<const ModalityShare> shares) {
  SimulatedCache cache(policy, pool_bytes, shares);
  for (const TraceRequest& request : trace) cache.serve(request);
  return cache.result();
}

}  // namespace vitrove::simulation
