// What /stats and the status page say of what the cache holds and what it is worth.
#pragma once

#include <nlohmann/json.hpp>

#include "server/hit_history.h"
#include "vitrove/embedding_cache_controller.h"

namespace vitrove {

// {"1m": ..., "10m": ..., "60m": ...}: of all lookups; null where there was none.
nlohmann::ordered_json hit_ratios_json(const EmbeddingCacheController& controller,
                                       const HitHistory& history);

// "models": a line for each modality and model that was looked up or is held; "top_keys": what
// saved most encode time since it came into the pool.
nlohmann::ordered_json contents_json(const EmbeddingCacheController& controller,
                                     const HitHistory& history);

}  // namespace vitrove
