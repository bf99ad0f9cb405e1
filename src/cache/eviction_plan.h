// Which entries have to go so that an allocation succeeds, by where they lie.
//
// The policy's order is the better one, but it makes room anywhere; a row larger than a page needs
// neighbours. The plan looks at the whole arena in page order: a block is open when it is free or
// its entry may be evicted. It answers first whether eviction can help at all, so that nobody is
// evicted in vain.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "vitrove/page_pool.h"

namespace vitrove {

struct PayloadNeed {
  std::uint64_t rows = 0;
  std::uint64_t row_bytes = 0;
  std::uint64_t tail_bytes = 0;
  std::uint64_t bytes() const { return rows * row_bytes + tail_bytes; }
};

// Owners to evict, each once; empty when there is room already; nothing when eviction cannot help.
// `blocks` are all blocks of the pool in page order.
std::optional<std::vector<std::uint32_t>> plan_eviction(
    std::span<const PageBlock> blocks, const PayloadNeed& need, std::uint64_t page_bytes,
    const std::function<bool(std::uint32_t owner)>& evictable);

}  // namespace vitrove
