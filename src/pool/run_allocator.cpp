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

RunAllocator::RunAllocator(std::uint32_t pages) : blocks_(pages), record_at_(pages / 2 + 1) {
  heads_.fill(nil);
  if (pages == 0) return;
  // As many as there can be, so that no operation ever has to grow the table. Not committed yet.
  free_runs_.reserve(pages / 2 + 1);
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
    for (std::uint32_t at = heads_[from]; at != nil; at = free_runs_[at].next) {
      if (free_runs_[at].run.count >= count) return free_runs_[at].run;
    }
    ++from;
  }
  const std::uint32_t bin = next_filled_bin(from);
  if (bin == nil) return std::nullopt;
  return free_runs_[heads_[bin]].run;
}

std::optional<PageRun> RunAllocator::longest() const {
  const std::uint32_t bin = last_filled_bin();
  if (bin == nil) return std::nullopt;
  PageRun best = free_runs_[heads_[bin]].run;
  if (bin < exact_bins) return best;
  for (std::uint32_t at = heads_[bin]; at != nil; at = free_runs_[at].next) {
    if (free_runs_[at].run.count > best.count) best = free_runs_[at].run;
  }
  return best;
}

PageRun RunAllocator::take(const PageRun& free_run, std::uint32_t count) {
  const PageRun wanted{free_run.first, count};
  carve(free_run, wanted);
  return wanted;
}

void RunAllocator::carve(const PageRun& free_run, const PageRun& wanted) {
  const PageRun whole = free_run;  // `free_run` may be the record that goes now
  unlink(whole);
  const std::uint32_t end = wanted.first + wanted.count;
  const std::uint32_t whole_end = whole.first + whole.count;
  if (wanted.first > whole.first) link({whole.first, wanted.first - whole.first});
  if (whole_end > end) link({end, whole_end - end});
  blocks_.set_taken(wanted);
  free_pages_ -= wanted.count;
}

void RunAllocator::shrink(const PageRun& run, std::uint32_t count) {
  if (count == run.count) return;
  const PageRun rest{run.first + count, run.count - count};
  blocks_.set_taken(rest);
  release(rest);
}

PageRun RunAllocator::release(const PageRun& run) {
  if (!is_taken(run)) fail("released pages that are not a taken run", run);
  free_pages_ += run.count;
  blocks_.clear(run);
  if (!owners_.empty()) owners_[run.first] = PageBlock::no_owner;
  PageRun merged = run;
  if (run.first > 0 && blocks_.is_free(run.first - 1)) {
    const PageRun before = free_run_at(run.first - 1);
    unlink(before);
    merged = {before.first, before.count + run.count};
  }
  const std::uint32_t end = run.first + run.count;
  if (end < pages() && blocks_.is_free(end)) {
    const PageRun after = free_run_at(end);
    unlink(after);
    merged.count += after.count;
  }
  link(merged);
  return merged;
}

bool RunAllocator::is_taken(const PageRun& run) const {
  return blocks_.is_block(run) && !blocks_.is_free(run.first);
}

void RunAllocator::set_owner(const PageRun& run, std::uint32_t owner) {
  if (!is_taken(run)) fail("set the owner of pages that are not a taken run", run);
  if (owners_.empty()) owners_.assign(pages(), PageBlock::no_owner);
  owners_[run.first] = owner;
}

PageBlock RunAllocator::block_from(std::uint32_t page) const {
  if (blocks_.is_free(page)) return {free_run_at(page), true, PageBlock::no_owner};
  const std::uint32_t owner = owners_.empty() ? PageBlock::no_owner : owners_[page];
  return {{page, blocks_.end_of_block(page, pages()) - page}, false, owner};
}

PageBlock RunAllocator::block_before(std::uint32_t page) const {
  return block_from(blocks_.start_of_block_before(page));
}

void RunAllocator::link(const PageRun& run) {
  const std::uint32_t bin = bin_of(run.count);
  const std::uint32_t next = heads_[bin];
  std::uint32_t record = unused_records_;
  if (record != nil) {
    unused_records_ = free_runs_[record].next;
    free_runs_[record] = {run, next, nil};
  } else {
    record = static_cast<std::uint32_t>(free_runs_.size());
    free_runs_.push_back({run, next, nil});
  }
  if (next != nil) free_runs_[next].previous = record;
  heads_[bin] = record;
  filled_[bin / 64] |= std::uint64_t{1} << (bin % 64);
  filled_words_ |= std::uint64_t{1} << (bin / 64);
  blocks_.set_free(run);
  record_at_[pair_of(run.first)] = record;
  record_at_[pair_of(run.first + run.count - 1)] = record;
}

void RunAllocator::unlink(const PageRun& run) {
  const std::uint32_t record = record_of(run.first);
  FreeRun& free_run = free_runs_[record];
  blocks_.clear(run);
  const std::uint32_t next = free_run.next;
  const std::uint32_t previous = free_run.previous;
  free_run.next = unused_records_;
  unused_records_ = record;
  if (next != nil) free_runs_[next].previous = previous;
  if (previous != nil) {
    free_runs_[previous].next = next;
    return;
  }
  const std::uint32_t bin = bin_of(run.count);
  heads_[bin] = next;
  if (next != nil) return;
  filled_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
  if (filled_[bin / 64] == 0) filled_words_ &= ~(std::uint64_t{1} << (bin / 64));
}

void RunAllocator::check_invariants() const {
  check_blocks();
  check_bins();
}

void RunAllocator::check_blocks() const {
  std::uint32_t free_seen = 0;
  bool previous_free = false;
  for (std::uint32_t page = 0; page < pages();) {
    if (!blocks_.starts_block(page)) fail("no block starts here", {page, 0});
    if (blocks_.is_free(page) && record_of(page) >= free_runs_.size()) {
      fail("bad record", {page, 0});
    }
    const PageBlock block = block_from(page);
    const PageRun& run = block.run;
    if (run.first != page || run.count == 0 || run.count > pages() - page) fail("bad size", run);
    if (!blocks_.is_block(run)) fail("a block begins inside of another", run);
    const std::uint32_t last = page + run.count - 1;
    if (blocks_.is_free(last) != block.free) fail("ends differ", run);
    if (block.free && record_of(last) != record_of(page)) fail("records differ", run);
    if (block.free && previous_free) fail("free runs side by side", run);
    if (block.free) free_seen += run.count;
    previous_free = block.free;
    page += run.count;
  }
  if (free_seen != free_pages_) fail("free pages miscounted", {0, free_seen});
}

void RunAllocator::check_bins() const {
  std::uint32_t free_seen = 0;
  std::size_t records = 0;
  for (std::uint32_t bin = 0; bin < bin_count; ++bin) {
    const bool bit = ((filled_[bin / 64] >> (bin % 64)) & 1) != 0;
    if (bit != (heads_[bin] != nil)) fail("bitmap differs from bin", {bin, 0});
    std::uint32_t previous = nil;
    for (std::uint32_t at = heads_[bin]; at != nil; at = free_runs_[at].next) {
      const PageRun& run = free_runs_[at].run;
      if (bin_of(run.count) != bin) fail("run in a wrong bin", run);
      if (!blocks_.is_free(run.first) || record_of(run.first) != at) fail("stray record", run);
      if (free_runs_[at].previous != previous) fail("broken back link", run);
      free_seen += run.count;
      if (free_seen > free_pages_) fail("bins hold more than is free", run);
      previous = at;
      ++records;
    }
  }
  for (std::size_t word = 0; word < 64; ++word) {
    const bool bit = ((filled_words_ >> word) & 1) != 0;
    if (bit != (word < bin_words && filled_[word] != 0)) {
      fail("bitmap summary differs", {static_cast<std::uint32_t>(word), 0});
    }
  }
  for (std::uint32_t at = unused_records_; at != nil; at = free_runs_[at].next) ++records;
  if (records != free_runs_.size()) fail("records lost", {0, 0});
  if (free_seen != free_pages_) fail("bins do not hold all free pages", {0, free_seen});
}

}  // namespace vitrove
