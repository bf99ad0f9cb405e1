// PagePool: the paged, pinned host memory of one process (design section 6).
//
// One byte arena in pages of equal size, a shared mapping of one memfd so that other processes of
// the host can map it, and the only memory ever handed to stores. Three parts stand in it, in this
// order: data pages, staging pages, header slots (256 bytes each). Staging and slots remain when
// the pool size is 0.
//
// Memory is committed lazily; `huge_pages` asks for transparent huge pages (or hugetlb when
// configured on the host); `pin_memory` locks it. Neither failing is an error: the reason is kept
// in `warnings()`.
//
// An allocation is a PageRuns: at most a few runs of adjacent pages, each run holding whole rows,
// so that each can be viewed as a [rows, dim] tensor. `tail_bytes` (side data) follow the last row
// in the last run. One run is preferred; up to `preferred_runs` (3) where possible; more only when
// nothing else fits. Allocation succeeds exactly when free runs can hold the whole rows and the
// tail.
//
// The allocator keeps free runs in size bins with boundary tags and coalesces at once; its cost
// does not grow with the number of pages. It is not tied to entries or eviction: see cache/.
//
// Thread-safe: one mutex, held for tens of nanoseconds; readers of pages take no lock at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vitrove {

struct PageRun {
  std::uint32_t first = 0;  // page index
  std::uint32_t count = 0;  // pages
  bool operator==(const PageRun&) const = default;
};

// Where an entry's payload lies. A plain value: whoever holds it must give it back to the pool
// once.
struct PageRuns {
  struct Segment {
    PageRun run;
    std::uint32_t rows = 0;   // whole rows in this run, from its start
    std::uint64_t bytes = 0;  // rows * row_bytes, plus the tail in the last run
  };
  std::vector<Segment> segments;  // small; one in the common case

  std::uint64_t pages() const;
  std::uint64_t bytes() const;
};

struct PagePoolOptions {
  std::uint64_t pool_bytes = std::uint64_t{4} << 30;  // 0: no data pages
  std::uint64_t page_bytes = 64 * 1024;               // power of two, at least 4096
  std::uint32_t staging_pages = 256;
  std::uint32_t header_slots = 1024;
  bool pin_memory = false;
  bool huge_pages = false;
};

class PagePool {
 public:
  // Throws Error{invalid_argument} for bad options, Error{unavailable} when memory is not to be
  // had.
  explicit PagePool(const PagePoolOptions& options);
  ~PagePool();
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  // Nothing when the free runs cannot hold it. `row_bytes` > 0, `rows` > 0.
  std::optional<PageRuns> allocate(std::uint64_t rows, std::uint64_t row_bytes,
                                   std::uint64_t tail_bytes = 0);
  void release(const PageRuns& runs);

  // True when an empty pool could hold it: an item for which this is false is never cached and
  // evicts nobody (field case B64).
  bool can_ever_fit(std::uint64_t rows, std::uint64_t row_bytes,
                    std::uint64_t tail_bytes = 0) const;

  // Whether `allocate` would succeed if the pages for which `is_free_or_evictable(page)` holds were
  // free: lets the controller direct eviction at neighbours when a row is larger than a page.
  // Length of the longest free run, in pages.
  std::uint32_t longest_free_run() const;

  // Staging: pages of one contiguous block for values in passing; bounded; nothing when exhausted.
  // Move-only, gives itself back.
  class Staging;
  std::optional<Staging> borrow_staging(std::uint64_t bytes);

  // A 256-byte header slot inside the arena, given back by its destructor.
  class HeaderSlot;
  std::optional<HeaderSlot> borrow_header_slot();

  std::span<std::byte> segment_bytes(const PageRuns::Segment& segment);
  std::span<const std::byte> segment_bytes(const PageRuns::Segment& segment) const;
  std::span<std::byte> arena();
  int memfd() const;  // owned by the pool

  std::uint64_t page_bytes() const;
  std::uint64_t total_pages() const;
  std::uint64_t free_pages() const;
  std::uint64_t staging_pages_free() const;
  std::uint64_t header_slots_free() const;
  const std::vector<std::string>& warnings() const;

  // Walks all tags; for tests and debug builds. Throws std::logic_error naming what is wrong.
  void check_invariants() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class PagePool::Staging {
 public:
  Staging() = default;
  Staging(Staging&& other) noexcept;
  Staging& operator=(Staging&& other) noexcept;
  ~Staging();
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  friend class PagePool;
  PagePool* pool_ = nullptr;
  std::span<std::byte> bytes_;
  PageRun run_;
};

class PagePool::HeaderSlot {
 public:
  HeaderSlot() = default;
  HeaderSlot(HeaderSlot&& other) noexcept;
  HeaderSlot& operator=(HeaderSlot&& other) noexcept;
  ~HeaderSlot();
  std::span<std::byte, 256> bytes() const { return std::span<std::byte, 256>(data_, 256); }

 private:
  friend class PagePool;
  PagePool* pool_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint32_t index_ = 0;
};

}  // namespace vitrove
