// PagePool: the paged, pinned host memory of one process (design section 6).
//
// One byte arena in pages of equal size, a shared mapping of one memfd so that other processes of
// the host can map it, and the only memory ever handed to stores. Three parts stand in it, in this
// order: data pages, staging pages, header slots (256 bytes each). Staging and slots remain when
// the pool size is 0. The file is sealed against resizing: no other process can cut it short.
//
// Memory is committed lazily; `huge_pages` asks for transparent huge pages, or takes hugetlb pages
// where the host has set enough of them aside; `numa_node` lets it lie on one node, and on others
// only when that is full; `pin_memory` commits and locks all of it, and registers it with CUDA
// where there is a CUDA run-time library, so that devices copy from it directly. None of these
// failing is an error: the reason is kept in `warnings()`, and the pool works. That there is no
// such library is no failure, and said in `notes()`.
//
// An allocation is a PageRuns: at most a few runs of adjacent pages, each run holding whole rows,
// so that each can be viewed as a [rows, dim] tensor. `tail_bytes` (side data) follow the last row
// in the last run; when only there is room, the last run holds the tail alone and no rows. One run
// is preferred (best fit); up to `preferred_runs` (3) where possible; more only when nothing else
// fits. Allocation succeeds exactly when the free runs can hold the whole rows and the tail.
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

#include "vitrove/small_vector.h"

namespace vitrove {

struct PageRun {
  std::uint32_t first = 0;  // page index
  std::uint32_t count = 0;  // pages
  bool operator==(const PageRun&) const = default;
};

// A free run, or a run of some allocation, as they lie in the pool.
struct PageBlock {
  static constexpr std::uint32_t no_owner = ~std::uint32_t{0};
  PageRun run;
  bool free = false;
  std::uint32_t owner = no_owner;  // see PagePool::set_owner
  bool operator==(const PageBlock&) const = default;
};

// Where an entry's payload lies: the segments' bytes, one after the other. A plain value: whoever
// holds it must give it back to the pool once.
struct PageRuns {
  struct Segment {
    PageRun run;
    std::uint32_t rows = 0;   // whole rows in this run, from its start; 0 only in a last run that
                              // holds nothing but the tail
    std::uint64_t bytes = 0;  // rows * row_bytes, plus the tail in the last run
    bool operator==(const Segment&) const = default;
  };
  SmallVector<Segment, 1> segments;  // one in the common case

  std::uint64_t pages() const;
  std::uint64_t bytes() const;

  // Says how many rows the payload really has, once the header of a value is known whose pages were
  // allocated by `allocate_payload`. Side data are what follows: they start at byte
  // `rows * row_bytes` of the payload and may reach over several segments (PagePool::copy_out
  // gathers them). False, changing nothing, when rows of that size cannot lie so.
  [[nodiscard]] bool set_rows(std::uint64_t rows, std::uint64_t row_bytes);
};

struct PagePoolOptions {
  std::uint64_t pool_bytes = std::uint64_t{4} << 30;  // rounded down to whole pages; 0: no pages
  std::uint64_t page_bytes = 64 * 1024;               // power of two, 4 KiB to 1 GiB
  std::uint32_t staging_pages = 256;
  std::uint32_t header_slots = 1024;
  bool pin_memory = false;
  bool huge_pages = false;
  std::optional<std::uint32_t> numa_node;
  // The CUDA run-time library that `pin_memory` registers with; empty: libcudart.so as the dynamic
  // linker finds it.
  std::string cuda_library;
  // Fill released data pages with `PagePool::poison`, so that a reader who kept no pin is found
  // out (field case B33). When unset: on in builds with assertions or sanitizers.
  std::optional<bool> poison_on_free;
};

class PagePool {
 public:
  static constexpr std::size_t preferred_runs = 3;
  static constexpr std::size_t any_number = ~std::size_t{0};
  static constexpr std::size_t header_slot_bytes = 256;
  static constexpr std::byte poison{0xA5};

  // Throws Error{invalid_argument} for bad options, Error{unavailable} when memory is not to be
  // had.
  explicit PagePool(const PagePoolOptions& options);
  ~PagePool();
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  // Nothing when the free runs cannot hold it, or not `max_runs` of them. `row_bytes` > 0,
  // `rows` > 0. A full cache that evicts until `preferred_runs` are enough stays 92 to 99 % full;
  // one that takes every hole ends up with ten runs an entry.
  std::optional<PageRuns> allocate(std::uint64_t rows, std::uint64_t row_bytes,
                                   std::uint64_t tail_bytes = 0, std::size_t max_runs = any_number);

  // For a value of which only the size is known: rows of `row_bytes` and side data of unknown size
  // add up to `payload_bytes` > 0. Lays it out as payload_bytes / row_bytes rows and a tail of the
  // remainder: every run but the last holds a whole number of rows, so rows never straddle runs
  // however many of them turn out to be side data. See PageRuns::set_rows.
  std::optional<PageRuns> allocate_payload(std::uint64_t payload_bytes, std::uint64_t row_bytes,
                                           std::size_t max_runs = any_number);

  // Throws std::logic_error, releasing nothing, when a run is not allocated (a double release).
  void release(const PageRuns& runs);

  // Keeps the rows and gives back the pages that hold nothing but what follows them: side data that
  // the caller has parsed (a few bytes of it would otherwise cost a page wherever the rows fill
  // theirs). The rows keep their addresses.
  void trim_to_rows(PageRuns& runs, std::uint64_t row_bytes);

  // True when an empty pool could hold it: an item for which this is false is never cached and
  // evicts nobody (field case B64).
  bool can_ever_fit(std::uint64_t rows, std::uint64_t row_bytes,
                    std::uint64_t tail_bytes = 0) const;

  // Whether `allocate` would succeed if `extra_free` (whole runs of allocations, none twice) were
  // released first. With all evictable runs: whether eviction can help at all.
  bool would_fit(std::uint64_t rows, std::uint64_t row_bytes, std::uint64_t tail_bytes,
                 std::span<const PageRun> extra_free);

  // Length of the longest free run, in pages.
  std::uint32_t longest_free_run() const;

  // To direct eviction at neighbours when a row is larger than a page: mark each allocation with
  // whose it is, then look at the blocks in page order; all of them, or those that lie within
  // `reach` pages of a run (with the run itself).
  void set_owner(const PageRuns& runs, std::uint32_t owner);
  std::vector<PageBlock> blocks() const;
  std::vector<PageBlock> blocks_around(const PageRun& run, std::uint32_t reach) const;

  // Staging: pages of one contiguous block for values in passing; bounded; nothing when exhausted
  // or for 0 bytes. Move-only, gives itself back; must not outlive the pool.
  class Staging;
  std::optional<Staging> borrow_staging(std::uint64_t bytes);

  // A 256-byte header slot inside the arena, given back by its destructor; must not outlive the
  // pool.
  class HeaderSlot;
  std::optional<HeaderSlot> borrow_header_slot();

  std::span<std::byte> segment_bytes(const PageRuns::Segment& segment);
  std::span<const std::byte> segment_bytes(const PageRuns::Segment& segment) const;

  // Copies between a flat buffer and the payload from byte `offset` on. Throws std::out_of_range
  // when the payload ends before.
  void copy_out(const PageRuns& runs, std::uint64_t offset, std::span<std::byte> out) const;
  void copy_in(const PageRuns& runs, std::uint64_t offset, std::span<const std::byte> in);

  std::span<std::byte> arena();
  int memfd() const;  // owned by the pool

  std::uint64_t page_bytes() const;
  std::uint64_t total_pages() const;
  std::uint64_t free_pages() const;
  std::uint64_t staging_pages_free() const;
  std::uint64_t header_slots_free() const;
  const std::vector<std::string>& warnings() const;
  const std::vector<std::string>& notes() const;  // what an operator may want to know

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
  std::span<std::byte, header_slot_bytes> bytes() const {
    return std::span<std::byte, header_slot_bytes>(data_, header_slot_bytes);
  }

 private:
  friend class PagePool;
  PagePool* pool_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint32_t index_ = 0;
};

}  // namespace vitrove
