#include "pool/row_layout.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace vitrove {
namespace {

constexpr std::uint64_t page = 8;  // tiny, so that all layouts can be tried

// Tries every way to spread rows and tail over the free runs; answers the fewest runs needed.
class BruteForce {
 public:
  BruteForce(std::vector<std::uint32_t> free_runs, const PayloadShape& shape)
      : free_runs_(std::move(free_runs)), shape_(shape) {}

  std::optional<std::size_t> fewest_runs() {
    best_.reset();
    search(0, shape_.rows, shape_.tail_bytes == 0, 0);
    return best_;
  }

 private:
  void search(std::size_t run, std::uint64_t rows, bool tail_done, std::size_t used) {
    if (best_ && used >= *best_) return;
    if (rows == 0 && tail_done) {
      best_ = used;
      return;
    }
    if (run == free_runs_.size()) return;
    const std::uint64_t room = free_runs_[run] * page;
    search(run + 1, rows, tail_done, used);
    for (std::uint64_t here = 1; here <= rows && here * shape_.row_bytes <= room; ++here) {
      search(run + 1, rows - here, tail_done, used + 1);
    }
    if (tail_done) return;
    for (std::uint64_t here = 0;
         here <= rows && here * shape_.row_bytes + shape_.tail_bytes <= room; ++here) {
      search(run + 1, rows - here, true, used + 1);
    }
  }

  std::vector<std::uint32_t> free_runs_;
  PayloadShape shape_;
  std::optional<std::size_t> best_;
};

// An area whose free runs are randomly placed.
struct Area {
  explicit Area(std::uint32_t pages, std::mt19937& random) : allocator(pages) {
    std::vector<PageRun> parts;
    while (allocator.free_pages() > 0) {
      const auto left = allocator.longest()->count;
      parts.push_back(
          allocator.take(*allocator.longest(), std::min(left, 1 + std::uint32_t(random() % 5))));
    }
    for (const PageRun& part : parts) {
      if (random() % 2 == 0) {
        allocator.release(part);
      } else {
        held.push_back(part);
      }
    }
  }

  std::vector<PageRun> free_runs() const {
    std::vector<PageRun> runs;
    for (std::uint32_t at = 0; at < allocator.pages();) {
      const PageBlock block = allocator.block_from(at);
      if (block.free) runs.push_back(block.run);
      at += block.run.count;
    }
    return runs;
  }

  std::vector<std::uint32_t> free_lengths() const {
    std::vector<std::uint32_t> lengths;
    for (const PageRun& run : free_runs()) lengths.push_back(run.count);
    return lengths;
  }

  RunAllocator allocator;
  std::vector<PageRun> held;
};

bool inside_one_of(const std::vector<PageRun>& free_runs, const PageRun& run) {
  return std::ranges::any_of(free_runs, [&](const PageRun& free) {
    return run.first >= free.first && run.first + run.count <= free.first + free.count;
  });
}

void expect_sound(const PageRuns& runs, const PayloadShape& shape, std::uint64_t page_bytes) {
  std::uint64_t rows = 0;
  for (const auto& segment : runs.segments) {
    const bool last = &segment == &runs.segments.back();
    rows += segment.rows;
    EXPECT_EQ(segment.bytes, segment.rows * shape.row_bytes + (last ? shape.tail_bytes : 0));
    EXPECT_EQ(segment.run.count, (segment.bytes + page_bytes - 1) / page_bytes);
    EXPECT_TRUE(last || segment.rows > 0);
    for (const auto& other : runs.segments) {
      const bool apart = segment.run.first + segment.run.count <= other.run.first ||
                         other.run.first + other.run.count <= segment.run.first;
      EXPECT_TRUE(&other == &segment || apart);
    }
  }
  EXPECT_EQ(rows, shape.rows);
  EXPECT_EQ(runs.bytes(), *shape.bytes());
}

TEST(RowLayout, SucceedsExactlyWhenSomeLayoutExistsAndUsesTheFewestRuns) {
  std::mt19937 random(5);
  int possible = 0;
  int impossible = 0;
  int of_many_runs = 0;
  for (int round = 0; round < 20000; ++round) {
    Area area(16, random);
    PayloadShape shape;
    shape.row_bytes = 1 + random() % 30;  // from many rows a page to rows of four pages
    const std::uint64_t room = area.allocator.free_pages() * page;
    shape.rows = 1 + random() % std::max<std::uint64_t>(1, 1 + room / shape.row_bytes);
    shape.tail_bytes = random() % 3 == 0 ? 0 : random() % 20;

    const auto before = area.free_runs();
    const auto expected = BruteForce(area.free_lengths(), shape).fewest_runs();
    if (expected) {
      ASSERT_FALSE(allocate_rows(area.allocator, shape, page, *expected - 1));
      ASSERT_EQ(area.free_runs(), before);
    }
    const auto runs = allocate_rows(area.allocator, shape, page, expected.value_or(100));
    ASSERT_EQ(runs.has_value(), expected.has_value())
        << shape.rows << " rows of " << shape.row_bytes << " and " << shape.tail_bytes;
    area.allocator.check_invariants();
    if (!runs) {
      ++impossible;
      ASSERT_EQ(area.free_runs(), before) << "a failure must change nothing";
      continue;
    }
    ++possible;
    of_many_runs += runs->segments.size() > 1 ? 1 : 0;
    ASSERT_EQ(runs->segments.size(), *expected);
    expect_sound(*runs, shape, page);
    for (const auto& segment : runs->segments) {
      ASSERT_TRUE(inside_one_of(before, segment.run));
      area.allocator.release(segment.run);
    }
    ASSERT_EQ(area.free_runs(), before);
  }
  // The rounds must have met all kinds.
  EXPECT_GT(possible, 1000);
  EXPECT_GT(impossible, 1000);
  EXPECT_GT(of_many_runs, 1000);
}

TEST(RowLayout, TheTailGoesWhereItCostsNoRow) {
  // Free: 3 pages (24 bytes) and 2 pages (16 bytes); rows of 8: five rows fill both, and four with
  // a tail of 8 must not be refused.
  RunAllocator pages(6);
  const PageRun first = pages.take({0, 6}, 3);
  pages.take({3, 3}, 1);
  pages.release(first);
  const PayloadShape shape{4, 8, 8};
  const auto runs = allocate_rows(pages, shape, page);
  ASSERT_TRUE(runs);
  expect_sound(*runs, shape, page);
  EXPECT_EQ(pages.free_pages(), 0u);
}

TEST(RowLayout, ARunSmallerThanARowCanStillHoldTheTail) {
  // Free: 3 pages and 1 page; one row of 24 bytes fills the first.
  RunAllocator pages(5);
  const PageRun first = pages.take({0, 5}, 3);
  pages.take({3, 2}, 1);
  pages.release(first);
  const PayloadShape shape{1, 24, 5};
  const auto runs = allocate_rows(pages, shape, page);
  ASSERT_TRUE(runs);
  expect_sound(*runs, shape, page);
  ASSERT_EQ(runs->segments.size(), 2u);
  EXPECT_EQ(runs->segments[1].rows, 0u);
  EXPECT_EQ(runs->segments[1].bytes, 5u);
}

// A hundred thousand steps of a pool in use, at a real page size, with large and small rows.
TEST(RowLayout, NothingIsLostOrGivenTwiceOverAHundredThousandSteps) {
  constexpr std::uint32_t area = 2000;
  constexpr std::uint64_t small_page = 4096;
  std::mt19937 random(17);
  RunAllocator allocator(area);
  std::vector<bool> taken(area, false);
  std::vector<PageRuns> held;
  const auto set = [&](const PageRuns& runs, bool value) {
    for (const auto& segment : runs.segments) {
      for (std::uint32_t i = 0; i < segment.run.count; ++i) {
        ASSERT_NE(taken[segment.run.first + i], value);
        taken[segment.run.first + i] = value;
      }
    }
  };
  std::uint64_t pages_held = 0;
  for (int step = 0; step < 100000; ++step) {
    const PayloadShape shape{1 + random() % 64, 64 + random() % 12000, random() % 300};
    auto runs = random() % 2 == 0 ? allocate_rows(allocator, shape, small_page) : std::nullopt;
    if (runs) {
      set(*runs, true);
      pages_held += runs->pages();
      held.push_back(std::move(*runs));
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      set(held.back(), false);
      pages_held -= held.back().pages();
      for (const auto& segment : held.back().segments) allocator.release(segment.run);
      held.pop_back();
    }
    ASSERT_EQ(allocator.free_pages(), area - pages_held);
    if (step % 500 == 0) allocator.check_invariants();
    if (HasFatalFailure()) return;
  }
  for (const PageRuns& runs : held) {
    for (const auto& segment : runs.segments) allocator.release(segment.run);
  }
  EXPECT_EQ(allocator.longest(), (PageRun{0, area}));
}

constexpr std::uint64_t real_page = 64 * 1024;

// Rows of real towers: 64 to 16384 of them, of 2 to 20 KB.
class RealShapes {
 public:
  explicit RealShapes(std::mt19937& random) : random_(random) {}

  PayloadShape next() {
    static constexpr std::uint64_t row_sizes[] = {2048, 2304, 2560, 3072,  4096,  5120,
                                                  6144, 7168, 8192, 10240, 16384, 20480};
    const auto rows = static_cast<std::uint64_t>(std::exp(log_rows_(random_)));
    return {rows, row_sizes[random_() % std::size(row_sizes)], 0};
  }

 private:
  std::mt19937& random_;
  std::uniform_real_distribution<double> log_rows_{std::log(64.0), std::log(16384.0)};
};

// A cache that is always full: it evicts at random until the next entry fits.
struct FullCache {
  FullCache(std::uint32_t pages, std::size_t most_runs) : allocator(pages), max_runs(most_runs) {}

  const PageRuns& insert(const PayloadShape& shape) {
    for (;;) {
      if (auto runs = allocate_rows(allocator, shape, real_page, max_runs)) {
        held.push_back(std::move(*runs));
        return held.back();
      }
      std::swap(held[random() % held.size()], held.back());
      for (const auto& segment : held.back().segments) allocator.release(segment.run);
      held.pop_back();
    }
  }

  std::mt19937 random{29};
  RunAllocator allocator;
  std::size_t max_runs;
  std::vector<PageRuns> held;
};

// Design section 10.
TEST(RowLayout, WasteForRealTokenCountsStaysSmallInAFullCache) {
  for (const std::size_t max_runs : {PagePool::preferred_runs, PagePool::any_number}) {
    FullCache cache(60000, max_runs);
    std::mt19937 random(23);
    RealShapes shapes(random);
    std::uint64_t room = 0;
    std::uint64_t bytes = 0;
    double waste_of_entries = 0;
    constexpr int entries = 20000;
    for (int i = 0; i < entries; ++i) {
      const PageRuns& runs = cache.insert(shapes.next());
      ASSERT_LE(runs.segments.size(), max_runs);
      const std::uint64_t here = runs.pages() * real_page;
      room += here;
      bytes += runs.bytes();
      waste_of_entries += 1.0 - static_cast<double>(runs.bytes()) / static_cast<double>(here);
    }
    EXPECT_LE(1.0 - static_cast<double>(bytes) / static_cast<double>(room), 0.005);
    EXPECT_LE(waste_of_entries / entries, 0.025);
  }
}

TEST(RowLayout, ACacheThatEvictsUntilThreeRunsAreEnoughStaysNearlyFull) {
  FullCache cache(60000, PagePool::preferred_runs);
  std::mt19937 random(23);
  RealShapes shapes(random);
  double full = 0;
  constexpr int warm_up = 2000;
  constexpr int entries = 20000;
  for (int i = 0; i < warm_up + entries; ++i) {
    cache.insert(shapes.next());
    if (i >= warm_up) full += 1.0 - cache.allocator.free_pages() / 60000.0;
  }
  EXPECT_GE(full / entries, 0.9);
}

}  // namespace
}  // namespace vitrove
