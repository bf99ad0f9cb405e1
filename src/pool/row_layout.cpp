#include "pool/row_layout.h"

#include <algorithm>
#include <vector>

namespace vitrove {
namespace {

// One allocation while it is being put together. Runs are taken whole and trimmed at the end, so
// that giving up, also for want of memory, is just releasing them.
class LayoutSearch {
 public:
  LayoutSearch(RunAllocator& pages, const PayloadShape& shape, std::uint64_t page_bytes)
      : pages_(pages), shape_(shape), page_bytes_(page_bytes) {}
  ~LayoutSearch() {
    for (const PageRun& run : taken_) pages_.release(run);
  }
  LayoutSearch(const LayoutSearch&) = delete;
  LayoutSearch& operator=(const LayoutSearch&) = delete;

  std::optional<PageRuns> run(std::size_t max_runs) {
    while (taken_.size() < max_runs) {
      if (take_fit_for_rest()) return lay_out();
      if (!take_longest()) break;
      if (last_ && capacity_ - last_loss_ >= shape_.rows) {
        last_rows_ = std::min(shape_.rows, rows_beside_tail(taken_[*last_]));
        return lay_out();
      }
    }
    return std::nullopt;
  }

 private:
  std::uint64_t bytes_of(const PageRun& run) const { return run.count * page_bytes_; }
  std::uint64_t rows_in(const PageRun& run) const { return bytes_of(run) / shape_.row_bytes; }
  std::uint64_t rows_beside_tail(const PageRun& run) const {
    return (bytes_of(run) - shape_.tail_bytes) / shape_.row_bytes;
  }
  std::uint64_t pages_for(std::uint64_t bytes) const {
    return bytes / page_bytes_ + (bytes % page_bytes_ != 0 ? 1 : 0);
  }

  bool take_fit_for_rest() {
    const std::uint64_t rest = shape_.rows - std::min(shape_.rows, capacity_);
    const std::uint64_t need = pages_for(rest * shape_.row_bytes + shape_.tail_bytes);
    if (need > pages_.free_pages()) return false;
    const auto fit = pages_.best_fit(static_cast<std::uint32_t>(need));
    if (!fit) return false;
    last_ = taken_.size();
    last_rows_ = rest;
    take(*fit);
    return true;
  }

  bool take_longest() {
    const auto longest = pages_.longest();
    if (!longest || rows_in(*longest) == 0) return false;
    capacity_ += rows_in(*longest);
    consider_as_last(*longest);
    take(*longest);
    return true;
  }

  void consider_as_last(const PageRun& run) {
    if (bytes_of(run) < shape_.tail_bytes) return;
    const std::uint64_t loss = rows_in(run) - rows_beside_tail(run);
    if (last_ && loss >= last_loss_) return;
    last_ = taken_.size();
    last_loss_ = loss;
  }

  void take(const PageRun& run) {
    taken_.emplace_back();
    taken_.back() = pages_.take(run, run.count);
  }

  PageRuns lay_out() {
    PageRuns runs;
    runs.segments.reserve(taken_.size());
    std::uint64_t rest = shape_.rows - last_rows_;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (i == *last_) continue;
      const std::uint64_t rows = std::min(rest, rows_in(taken_[i]));
      rest -= rows;
      add_segment(runs, taken_[i], rows, 0);
    }
    add_segment(runs, taken_[*last_], last_rows_, shape_.tail_bytes);
    taken_.clear();
    return runs;
  }

  void add_segment(PageRuns& runs, const PageRun& run, std::uint64_t rows, std::uint64_t tail) {
    const std::uint64_t bytes = rows * shape_.row_bytes + tail;
    if (bytes == 0) {
      pages_.release(run);
      return;
    }
    const auto count = static_cast<std::uint32_t>(pages_for(bytes));
    pages_.shrink(run, count);
    runs.segments.push_back({{run.first, count}, static_cast<std::uint32_t>(rows), bytes});
  }

  RunAllocator& pages_;
  const PayloadShape& shape_;
  const std::uint64_t page_bytes_;

  std::vector<PageRun> taken_;
  std::uint64_t capacity_ = 0;       // rows that the runs taken so far could hold without a tail
  std::optional<std::size_t> last_;  // index of the run that gets the tail
  std::uint64_t last_loss_ = 0;      // rows that the tail displaces there
  std::uint64_t last_rows_ = 0;      // rows that lie before the tail
};

}  // namespace

std::optional<std::uint64_t> PayloadShape::bytes() const {
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(rows, row_bytes, &bytes)) return std::nullopt;
  if (__builtin_add_overflow(bytes, tail_bytes, &bytes)) return std::nullopt;
  return bytes;
}

std::optional<PageRuns> allocate_rows(RunAllocator& pages, const PayloadShape& shape,
                                      std::uint64_t page_bytes, std::size_t max_runs) {
  if (max_runs == 0) return std::nullopt;
  const std::uint64_t bytes = *shape.bytes();
  const std::uint64_t need = bytes / page_bytes + (bytes % page_bytes != 0 ? 1 : 0);
  if (need > pages.free_pages()) return std::nullopt;
  // The common case needs no search and no bookkeeping.
  if (const auto fit = pages.best_fit(static_cast<std::uint32_t>(need))) {
    PageRuns runs;
    const PageRun run = pages.take(*fit, static_cast<std::uint32_t>(need));
    runs.segments.push_back({run, static_cast<std::uint32_t>(shape.rows), bytes});
    return runs;
  }
  return LayoutSearch(pages, shape, page_bytes).run(max_runs);
}

}  // namespace vitrove
