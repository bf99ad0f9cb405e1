// Lays rows and what follows them out over free runs.
//
// A run of n pages holds floor(n * page_bytes / row_bytes) whole rows; the tail lies after the last
// row of the last run, or alone in a last run of no rows. So an allocation is possible exactly when
// for some free run j
//     sum over the other runs of floor(bytes_i / row_bytes)
//       + floor((bytes_j - tail) / row_bytes) >= rows   and   bytes_j >= tail.
// The search is greedy (best fit for all that is left, else the longest run) and remembers the run
// that would lose fewest rows to the tail. It is exact, and finds the fewest runs that do: k runs
// are enough only if the k longest are. It costs one step a run used.
#pragma once

#include <cstdint>
#include <optional>

#include "pool/run_allocator.h"
#include "vitrove/page_pool.h"

namespace vitrove {

struct PayloadShape {
  std::uint64_t rows = 0;
  std::uint64_t row_bytes = 0;
  std::uint64_t tail_bytes = 0;

  // Nothing on overflow.
  std::optional<std::uint64_t> bytes() const;
};

// `shape.bytes()` must not overflow and not be 0.
std::optional<PageRuns> allocate_rows(RunAllocator& pages, const PayloadShape& shape,
                                      std::uint64_t page_bytes,
                                      std::size_t max_runs = PagePool::any_number);

}  // namespace vitrove
