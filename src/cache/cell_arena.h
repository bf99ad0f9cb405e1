// CellArena: memory for the arrays of the entry table, together in huge pages where the host gives
// them. One array is smaller than a huge page, and by itself would lie in small ones: with a
// million entries nearly every lookup would then miss the TLB too. Nothing is given back before the
// end, since readers may still walk an array that was outgrown.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "pool/huge_page_allocator.h"

namespace vitrove {

class CellArena {
 public:
  using Cell = std::atomic<std::uint64_t>;

  // Zeroed. Throws std::bad_alloc.
  std::span<Cell> take(std::size_t count) {
    std::lock_guard lock(mutex_);
    if (rest_.size() < count) {
      rest_ = chunks_.emplace_back(std::max(count, chunk_cells));
    }
    const std::span<Cell> taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

 private:
  static constexpr std::size_t chunk_cells = (std::size_t{2} << 20) / sizeof(Cell);

  std::mutex mutex_;
  std::vector<std::vector<Cell, HugePageAllocator<Cell>>> chunks_;
  std::span<Cell> rest_;
};

}  // namespace vitrove
