// What a flush or a removal took away, tier by tier.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "vitrove/embedding_cache_controller.h"

namespace vitrove {

// [{"name": "pool", "removed": 3, "complete": true},
//  {"name": "mooncake", "removed": null, "complete": true}]
inline nlohmann::json tiers_json(const FlushReport& report) {
  auto tiers = nlohmann::json::array();
  for (const auto& tier : report.tiers) {
    tiers.push_back({{"name", tier.name},
                     {"removed", tier.removed ? nlohmann::json(*tier.removed) : nullptr},
                     {"complete", tier.complete}});
  }
  return tiers;
}

// Nothing that was meant is left, but in tiers that cannot list.
inline bool is_complete(const FlushReport& report) {
  return std::ranges::all_of(report.tiers, &FlushTier::complete);
}

// "redis, file#1": where something may be left.
inline std::string names_of_incomplete(const FlushReport& report) {
  std::string names;
  for (const auto& tier : report.tiers)
    if (!tier.complete) names += (names.empty() ? "" : ", ") + tier.name;
  return names;
}

inline std::uint64_t total_removed(const FlushReport& report) {
  std::uint64_t total = 0;
  for (const auto& tier : report.tiers) total += tier.removed.value_or(0);
  return total;
}

}  // namespace vitrove
