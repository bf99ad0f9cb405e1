// Values of which only the size is known when their pages are allocated.
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "vitrove/page_pool.h"

namespace vitrove {
namespace {

constexpr std::uint64_t page = 4096;

PagePoolOptions pool_of(std::uint64_t pages) {
  PagePoolOptions options;
  options.page_bytes = page;
  options.pool_bytes = pages * page;
  options.staging_pages = 0;
  options.header_slots = 0;
  return options;
}

// Leaves only holes of `pages_a_hole` pages.
std::vector<PageRuns> riddle(PagePool& pool, std::uint64_t pages_a_hole) {
  std::vector<PageRuns> held;
  std::vector<PageRuns> holes;
  while (auto hole = pool.allocate(pages_a_hole, page)) {
    holes.push_back(*hole);
    if (auto wall = pool.allocate(1, page)) held.push_back(*wall);
  }
  for (const auto& hole : holes) pool.release(hole);
  return held;
}

std::uint64_t rows_of(const PageRuns& runs) {
  return std::accumulate(runs.segments.begin(), runs.segments.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& segment) { return sum + segment.rows; });
}

TEST(Payload, WholeRowsLieInEachRunHoweverMuchOfItIsSideData) {
  constexpr std::uint64_t row_bytes = 1000;
  for (const std::uint64_t side : {0ull, 1ull, 999ull, 1000ull, 1001ull, 5000ull, 20000ull}) {
    PagePool pool(pool_of(60));
    const auto held = riddle(pool, 2);
    constexpr std::uint64_t rows = 20;
    auto runs = pool.allocate_payload(rows * row_bytes + side, row_bytes);
    ASSERT_TRUE(runs);
    ASSERT_GT(runs->segments.size(), 1u);
    EXPECT_EQ(runs->bytes(), rows * row_bytes + side);
    for (const auto& segment : runs->segments) {
      const bool last = &segment == &runs->segments.back();
      EXPECT_TRUE(last || segment.bytes % row_bytes == 0);
    }

    std::vector<std::byte> value(runs->bytes());
    for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<std::byte>(i * 7 / 5);
    pool.copy_in(*runs, 0, value);

    ASSERT_TRUE(runs->set_rows(rows, row_bytes));
    EXPECT_EQ(rows_of(*runs), rows);
    std::vector<std::byte> back;
    for (const auto& segment : runs->segments) {
      const auto bytes = pool.segment_bytes(segment).first(segment.rows * row_bytes);
      back.insert(back.end(), bytes.begin(), bytes.end());
    }
    back.resize(value.size());
    pool.copy_out(*runs, rows * row_bytes, std::span(back).subspan(rows * row_bytes));
    EXPECT_EQ(back, value);
  }
}

TEST(Payload, LessThanARowIsOneRunWithoutRows) {
  PagePool pool(pool_of(8));
  const auto runs = pool.allocate_payload(100, 4096);
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->segments.size(), 1u);
  EXPECT_EQ(runs->segments[0].rows, 0u);
  EXPECT_EQ(runs->bytes(), 100u);
}

TEST(Payload, SetRowsRefusesWhatCannotLieSoAndChangesNothing) {
  PageRuns runs;
  runs.segments = {{{0, 1}, 4, 4000}, {{5, 1}, 2, 2500}};
  const PageRuns before = runs;
  EXPECT_FALSE(runs.set_rows(7, 1000));  // more than the bytes hold
  EXPECT_FALSE(runs.set_rows(5, 900));   // row 5 would straddle the runs
  EXPECT_FALSE(runs.set_rows(0, 1000));
  EXPECT_FALSE(runs.set_rows(1, 0));
  EXPECT_FALSE(runs.set_rows(~std::uint64_t{0}, ~std::uint64_t{0}));
  EXPECT_EQ(runs.segments, before.segments);
  EXPECT_TRUE(runs.set_rows(4, 900));  // the rest of the first run is side data
  EXPECT_EQ(runs.segments[0].rows, 4u);
  EXPECT_EQ(runs.segments[1].rows, 0u);
}

TEST(Payload, TrimmingGivesBackPagesThatHoldOnlySideData) {
  PagePool pool(pool_of(60));
  const auto held = riddle(pool, 2);
  const std::uint64_t free = pool.free_pages();
  auto runs = pool.allocate_payload(4 * 2048 + 9000, 2048);
  ASSERT_TRUE(runs);
  ASSERT_TRUE(runs->set_rows(4, 2048));
  pool.trim_to_rows(*runs, 2048);
  EXPECT_EQ(runs->bytes(), 4u * 2048);
  EXPECT_EQ(runs->pages(), 2u);
  EXPECT_EQ(pool.free_pages(), free - 2);
  pool.check_invariants();
  pool.release(*runs);
  EXPECT_EQ(pool.free_pages(), free);
}

TEST(Payload, TrimmingKeepsThePagesThatRowsReachInto) {
  PagePool pool(pool_of(8));
  auto runs = *pool.allocate(3, 3000, 4000);
  EXPECT_EQ(runs.pages(), 4u);
  pool.trim_to_rows(runs, 3000);
  EXPECT_EQ(runs.pages(), 3u);
  EXPECT_EQ(runs.bytes(), 9000u);
  pool.trim_to_rows(runs, 3000);
  EXPECT_EQ(runs.pages(), 3u);
  EXPECT_EQ(pool.free_pages(), 5u);
  pool.check_invariants();
}

TEST(Payload, CopyingPastTheEndThrows) {
  PagePool pool(pool_of(8));
  const auto runs = *pool.allocate(2, 100);
  std::vector<std::byte> buffer(101);
  EXPECT_THROW(pool.copy_out(runs, 100, buffer), std::out_of_range);
  EXPECT_THROW(pool.copy_in(runs, 201, std::span(buffer).first(0)), std::out_of_range);
  EXPECT_NO_THROW(pool.copy_out(runs, 100, std::span(buffer).first(100)));
  EXPECT_NO_THROW(pool.copy_out(runs, 200, std::span(buffer).first(0)));
}

}  // namespace
}  // namespace vitrove
