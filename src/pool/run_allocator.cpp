#include "pool/run_allocator.h"

#include <bit>
#include <stdexcept>
#include <string>

namespace vitrove {
namespace {

std::string describe(const PageRun& run) {
  return "pages [" + std::to_string(run.first) + ", +" + std::to_string(run.count) + ")";
}

[[noreturn]] void fail(const std::string& what, const PageRun& run) {
  throw std::logic_error("page allocator: " + what + ": " + describe(run));
}

}  // namespace

RunAllocator::RunAllocator(std::uint32_t pages) : tags_(pages) {
  heads_.fill(nil);
  if (pages == 0) return;
  free_pages_ = pages;
  link({0, pages});
}

std::uint32_t RunAllocator::bin_of(std::uint32_t count) {
  if (count < exact_bins) return count;
  const auto shift = static_cast<std::uint32_t>(std::bit_width(count)) - 8;
  return shift * bins_per_octave + (count >> shift);
}

std::uint32_t RunAllocator::next_filled_bin(std::uint32_t from) const {
  if (from >= bin_count) return nil;
  std::uint32_t word = from / 64;
  std::uint64_t bits = filled_[word] & (~std::uint64_t{0} << (from % 64));
  if (bits == 0) {
    // bin_words < 64, so the shift stays in range.
    const std::uint64_t later = filled_words_ & (~std::uint64_t{0} << (word + 1));
    if (later == 0) return nil;
    word = static_cast<std::uint32_t>(std::countr_zero(later));
    bits = filled_[word];
  }
  return word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
}

std::uint32_t RunAllocator::last_filled_bin() const {
  if (filled_words_ == 0) return nil;
  const auto word = static_cast<std::uint32_t>(std::bit_width(filled_words_)) - 1;
  return word * 64 + static_cast<std::uint32_t>(std::bit_width(filled_[word])) - 1;
}

std::optional<PageRun> RunAllocator::best_fit(std::uint32_t count) const {
  if (count == 0 || count > free_pages_) return std::nullopt;
  std::uint32_t from = bin_of(count);
  if (from >= exact_bins) {
    // Runs of this bin may be too short by a little; every run of a later bin is long enough.
    for (std::uint32_t first = heads_[from]; first != nil; first = tags_[first].next) {
      if (tags_[first].size >= count) return PageRun{first, tags_[first].size};
    }
    ++from;
  }
  const std::uint32_t bin = next_filled_bin(from);
  if (bin == nil) return std::nullopt;
  const std::uint32_t first = heads_[bin];
  return PageRun{first, tags_[first].size};
}

std::optional<PageRun> RunAllocator::longest() const {
  const std::uint32_t bin = last_filled_bin();
  if (bin == nil) return std::nullopt;
  PageRun best{heads_[bin], tags_[heads_[bin]].size};
  if (bin < exact_bins) return best;
  for (std::uint32_t first = tags_[best.first].next; first != nil; first = tags_[first].next) {
    if (tags_[first].size > best.count) best = {first, tags_[first].size};
  }
  return best;
}

PageRun RunAllocator::take(const PageRun& free_run, std::uint32_t count) {
  const PageRun wanted{free_run.first, count};
  carve(free_run, wanted);
  return wanted;
}

void RunAllocator::carve(const PageRun& free_run, const PageRun& wanted) {
  unlink(free_run);
  const std::uint32_t end = wanted.first + wanted.count;
  const std::uint32_t free_end = free_run.first + free_run.count;
  if (wanted.first > free_run.first) link({free_run.first, wanted.first - free_run.first});
  if (free_end > end) link({end, free_end - end});
  mark(wanted, taken_bit);
  free_pages_ -= wanted.count;
}

void RunAllocator::shrink(const PageRun& run, std::uint32_t count) {
  if (count == run.count) return;
  const PageRun rest{run.first + count, run.count - count};
  mark({run.first, count}, taken_bit);
  mark(rest, taken_bit);
  release(rest);
}

PageRun RunAllocator::release(const PageRun& run) {
  if (!is_taken(run)) fail("released pages that are not a taken run", run);
  free_pages_ += run.count;
  unmark(run);
  tags_[run.first].owner = PageBlock::no_owner;
  PageRun merged = run;
  if (run.first > 0 && is_free_end(run.first - 1)) {
    const std::uint32_t size = tags_[run.first - 1].size;
    const PageRun before{run.first - size, size};
    unlink(before);
    merged = {before.first, before.count + run.count};
  }
  const std::uint32_t end = run.first + run.count;
  if (end < pages() && is_free_end(end)) {
    const PageRun after{end, tags_[end].size};
    unlink(after);
    merged.count += after.count;
  }
  link(merged);
  return merged;
}

bool RunAllocator::is_taken(const PageRun& run) const {
  if (run.count == 0 || run.first >= pages() || run.count > pages() - run.first) return false;
  const std::uint32_t tag = run.count | taken_bit;
  return tags_[run.first].size == tag && tags_[run.first + run.count - 1].size == tag;
}

void RunAllocator::set_owner(const PageRun& run, std::uint32_t owner) {
  if (!is_taken(run)) fail("set the owner of pages that are not a taken run", run);
  tags_[run.first].owner = owner;
}

PageBlock RunAllocator::block_from(std::uint32_t page) const {
  const Tag& tag = tags_[page];
  return {{page, tag.size & ~taken_bit}, (tag.size & taken_bit) == 0, tag.owner};
}

PageBlock RunAllocator::block_before(std::uint32_t page) const {
  return block_from(page - (tags_[page - 1].size & ~taken_bit));
}

// Only the first or the last page of a block is ever asked about.
bool RunAllocator::is_free_end(std::uint32_t page) const {
  return (tags_[page].size & taken_bit) == 0;
}

void RunAllocator::mark(const PageRun& run, std::uint32_t flag) {
  tags_[run.first].size = run.count | flag;
  tags_[run.first + run.count - 1].size = run.count | flag;
}

void RunAllocator::unmark(const PageRun& run) {
  tags_[run.first].size = 0;
  tags_[run.first + run.count - 1].size = 0;
}

void RunAllocator::link(const PageRun& run) {
  mark(run, 0);
  const std::uint32_t bin = bin_of(run.count);
  Tag& tag = tags_[run.first];
  tag.next = heads_[bin];
  tag.previous = nil;
  if (tag.next != nil) tags_[tag.next].previous = run.first;
  heads_[bin] = run.first;
  filled_[bin / 64] |= std::uint64_t{1} << (bin % 64);
  filled_words_ |= std::uint64_t{1} << (bin / 64);
}

void RunAllocator::unlink(const PageRun& run) {
  const Tag& tag = tags_[run.first];
  if (tag.next != nil) tags_[tag.next].previous = tag.previous;
  if (tag.previous != nil) {
    tags_[tag.previous].next = tag.next;
  } else {
    const std::uint32_t bin = bin_of(run.count);
    heads_[bin] = tag.next;
    if (tag.next == nil) {
      filled_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
      if (filled_[bin / 64] == 0) filled_words_ &= ~(std::uint64_t{1} << (bin / 64));
    }
  }
  unmark(run);
}

void RunAllocator::check_invariants() const {
  check_blocks();
  check_bins();
}

void RunAllocator::check_blocks() const {
  std::uint32_t free_seen = 0;
  bool previous_free = false;
  for (std::uint32_t page = 0; page < pages();) {
    const PageBlock block = block_from(page);
    const PageRun& run = block.run;
    if (run.count == 0 || run.count > pages() - page) fail("bad size of a block", run);
    if (tags_[page].size != tags_[page + run.count - 1].size) fail("tags differ", run);
    if (block.free && previous_free) fail("free runs side by side", run);
    if (block.free) free_seen += run.count;
    previous_free = block.free;
    page += run.count;
  }
  if (free_seen != free_pages_) fail("free pages miscounted", {0, free_seen});
}

void RunAllocator::check_bins() const {
  std::uint32_t free_seen = 0;
  for (std::uint32_t bin = 0; bin < bin_count; ++bin) {
    const bool bit = ((filled_[bin / 64] >> (bin % 64)) & 1) != 0;
    if (bit != (heads_[bin] != nil)) fail("bitmap differs from bin", {bin, 0});
    std::uint32_t previous = nil;
    for (std::uint32_t first = heads_[bin]; first != nil; first = tags_[first].next) {
      const PageBlock block = block_from(first);
      if (!block.free || bin_of(block.run.count) != bin) fail("run in a wrong bin", block.run);
      if (tags_[first].previous != previous) fail("broken back link", block.run);
      free_seen += block.run.count;
      if (free_seen > free_pages_) fail("bins hold more than is free", block.run);
      previous = first;
    }
  }
  for (std::size_t word = 0; word < bin_words; ++word) {
    const bool bit = ((filled_words_ >> word) & 1) != 0;
    if (bit != (filled_[word] != 0)) {
      fail("bitmap summary differs", {static_cast<std::uint32_t>(word), 0});
    }
  }
  if (free_seen != free_pages_) fail("bins do not hold all free pages", {0, free_seen});
}

}  // namespace vitrove
