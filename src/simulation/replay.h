// Replays a trace through the very code that chooses victims in a cache, over a pool without pages:
// who is held, and how many bytes that is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "simulation/trace.h"
#include "vitrove/eviction_policy.h"

namespace vitrove::simulation {

struct ReplayResult {
  std::uint64_t hits = 0;
  std::uint64_t hit_bytes = 0;
  double saved_us = 0;
  std::uint64_t evictions = 0;
};

class SimulatedCache {
 public:
  // Throws Error{invalid_argument} as make_eviction_policy() does.
  SimulatedCache(std::string_view policy, std::uint64_t pool_bytes,
                 std::span<const ModalityShare> shares = {});

  // True for a hit; what missed is held from then on, when there is room for it.
  bool serve(const TraceRequest& request);
  const ReplayResult& result() const { return result_; }

 private:
  struct Held {
    std::uint64_t key = 0;
    std::uint64_t bytes = 0;
  };
  bool make_room(const TraceRequest& request);
  void insert(const TraceRequest& request);

  std::unique_ptr<EvictionPolicy> policy_;
  std::uint64_t pool_bytes_;
  std::uint64_t used_ = 0;
  std::unordered_map<std::uint64_t, PolicySlot> slots_;
  std::vector<Held> held_;  // by slot
  std::vector<PolicySlot> unused_;
  ReplayResult result_;
};

ReplayResult replay(const Trace& trace, std::string_view policy, std::uint64_t pool_bytes,
                    std::span<const ModalityShare> shares = {});

}  // namespace vitrove::simulation
