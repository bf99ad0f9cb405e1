// What stands in the pool, for people: gathered when somebody asks, from what entries hold anyway.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/entry_slab.h"
#include "vitrove/embedding_cache_controller.h"

namespace vitrove {

// Pins each live entry while it is looked at.
PoolReport make_pool_report(const EntrySlab& slab, std::uint64_t page_bytes,
                            std::size_t most_valued);

}  // namespace vitrove
