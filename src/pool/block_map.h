// BlockMap: two bits a page that say where blocks begin and which blocks are free.
//
// A million pages need 250 KB, so what a release asks first (is this exactly a taken run, is a
// neighbour free) stays in the core's own cache however large the pool is.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "pool/huge_page_allocator.h"
#include "vitrove/page_pool.h"

namespace vitrove {

class BlockMap {
 public:
  explicit BlockMap(std::uint32_t pages) : pages_(pages), words_(pages / 64 + 1) {}

  std::uint32_t pages() const { return pages_; }

  bool starts_block(std::uint32_t page) const {
    return (words_[page / 64].starts & bit(page)) != 0;
  }
  // For the first and the last page of a block.
  bool is_free(std::uint32_t page) const { return (words_[page / 64].free_ends & bit(page)) != 0; }

  void set_taken(const PageRun& run) { words_[run.first / 64].starts |= bit(run.first); }
  void set_free(const PageRun& run) {
    set_taken(run);
    words_[run.first / 64].free_ends |= bit(run.first);
    words_[last(run) / 64].free_ends |= bit(last(run));
  }
  // Makes the pages nobody's, until one of the above.
  void clear(const PageRun& run) {
    words_[run.first / 64].starts &= ~bit(run.first);
    words_[run.first / 64].free_ends &= ~bit(run.first);
    words_[last(run) / 64].free_ends &= ~bit(last(run));
  }

  // Whether exactly these pages are one block.
  bool is_block(const PageRun& run) const {
    if (run.count == 0 || run.first >= pages_ || run.count > pages_ - run.first) return false;
    return starts_block(run.first) && end_of_block(run.first, run.count) == run.first + run.count;
  }

  // Where the block that starts at `first` ends, looking no farther than `reach` pages (then the
  // answer is past that).
  std::uint32_t end_of_block(std::uint32_t first, std::uint32_t reach) const {
    std::uint32_t page = first + 1;
    while (page < pages_ && page - first <= reach) {
      const std::uint64_t later = words_[page / 64].starts & (~std::uint64_t{0} << (page % 64));
      if (later != 0) return page / 64 * 64 + static_cast<std::uint32_t>(std::countr_zero(later));
      page = (page / 64 + 1) * 64;
    }
    return page < pages_ ? page : pages_;
  }

  // The first page of the block that ends just before `page`.
  std::uint32_t start_of_block_before(std::uint32_t page) const {
    std::uint32_t word = (page - 1) / 64;
    std::uint64_t earlier = words_[word].starts & (~std::uint64_t{0} >> (63 - (page - 1) % 64));
    while (earlier == 0 && word > 0) earlier = words_[--word].starts;
    return word * 64 + static_cast<std::uint32_t>(std::bit_width(earlier)) - 1;
  }

  void prefetch(std::uint32_t page) const { __builtin_prefetch(&words_[page / 64], 1); }

 private:
  struct Word {
    std::uint64_t starts = 0;
    std::uint64_t free_ends = 0;
  };

  static std::uint64_t bit(std::uint32_t page) { return std::uint64_t{1} << (page % 64); }
  static std::uint32_t last(const PageRun& run) { return run.first + run.count - 1; }

  std::uint32_t pages_;
  std::vector<Word, HugePageAllocator<Word>> words_;
};

}  // namespace vitrove
