// RunAllocator: which pages of an area are free (design section 6).
//
// Free runs are kept in bins by size, one bin a page count below 256 and 128 bins an octave above;
// a two-level bitmap finds the next filled bin in two bit scans. Both ends of a free run name its
// record, and a map of two bits a page tells ends from other pages: a released run finds its free
// neighbours at once, so that free runs never lie side by side. No operation walks pages.
//
// What costs time in a large pool is cache misses. Hence the records of free runs lie close
// together, and the table that leads to them, too large for a core's own cache, has one place for
// two pages and is read only where the map has shown a free neighbour.
//
// All this is kept beside the pages, never in them: pages that nobody has written stay uncommitted.
// Not thread-safe; the pool holds its mutex.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/prefetch.h"
#include "pool/block_map.h"
#include "pool/huge_page_allocator.h"
#include "vitrove/page_pool.h"

namespace vitrove {

class RunAllocator {
 public:
  static constexpr std::uint32_t max_pages = (std::uint32_t{1} << 31) - 1;

  explicit RunAllocator(std::uint32_t pages);

  std::uint32_t pages() const { return blocks_.pages(); }
  std::uint32_t free_pages() const { return free_pages_; }

  // A smallest free run of at least `count` pages; from 256 pages on within 1/128 of the smallest.
  // Nothing exactly when no free run is long enough.
  std::optional<PageRun> best_fit(std::uint32_t count) const;
  std::optional<PageRun> longest() const;

  // Takes the first `count` pages of a free run; the rest stays free.
  PageRun take(const PageRun& free_run, std::uint32_t count);
  // Takes `wanted`, which lies anywhere inside of a free run.
  void carve(const PageRun& free_run, const PageRun& wanted);
  // Gives back all but the first `count` pages of a taken run.
  void shrink(const PageRun& run, std::uint32_t count);
  // Answers the free run that the pages became part of. Throws std::logic_error unless `run` is
  // exactly a taken run: a double or foreign release must never corrupt somebody's data.
  PageRun release(const PageRun& run);

  bool is_taken(const PageRun& run) const;

  // Starts loading what `release` will touch. Needs no lock.
  void prefetch(const PageRun& run) const {
    if (run.count == 0 || run.first >= pages() || run.count > pages() - run.first) return;
    blocks_.prefetch(run.first);
    prefetch_for_write(&record_at_[pair_of(run.first)]);
    prefetch_for_write(&record_at_[pair_of(run.first + run.count - 1)]);
  }

  void set_owner(const PageRun& run, std::uint32_t owner);

  // The block that starts at `page`, and the one that ends just before it.
  PageBlock block_from(std::uint32_t page) const;
  PageBlock block_before(std::uint32_t page) const;

  // Throws std::logic_error naming what is wrong.
  void check_invariants() const;

 private:
  template <class T>
  using Table = std::vector<T, HugePageAllocator<T>>;

  struct FreeRun {
    PageRun run;
    std::uint32_t next = 0;  // in its bin; or in the list of unused records
    std::uint32_t previous = 0;
  };
  static constexpr std::uint32_t nil = ~std::uint32_t{0};
  static constexpr std::uint32_t exact_bins = 256;
  static constexpr std::uint32_t bins_per_octave = 128;
  static constexpr std::size_t bin_count = 3200;
  static constexpr std::size_t bin_words = bin_count / 64;

  static std::uint32_t bin_of(std::uint32_t count);
  std::uint32_t next_filled_bin(std::uint32_t from) const;
  std::uint32_t last_filled_bin() const;

  // Two pages share a place in the table of records: never are they ends of two free runs, which
  // would lie side by side.
  static constexpr std::uint32_t pair_of(std::uint32_t page) { return page / 2; }

  // For pages at an end of a free run.
  std::uint32_t record_of(std::uint32_t page) const { return record_at_[pair_of(page)]; }
  const PageRun& free_run_at(std::uint32_t page) const { return free_runs_[record_of(page)].run; }

  void link(const PageRun& run);
  void unlink(const PageRun& run);

  void check_blocks() const;
  void check_bins() const;

  BlockMap blocks_;
  Table<std::uint32_t> record_at_;  // by pair of pages; means something at ends of free runs only
  Table<FreeRun> free_runs_;
  std::uint32_t unused_records_ = nil;
  // By first page; empty until somebody sets an owner.
  Table<std::uint32_t> owners_;
  std::array<std::uint32_t, bin_count> heads_;  // records
  std::array<std::uint64_t, bin_words> filled_{};
  std::uint64_t filled_words_ = 0;  // bit w: filled_[w] != 0
  std::uint32_t free_pages_ = 0;
};

}  // namespace vitrove
