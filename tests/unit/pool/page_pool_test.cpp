#include "vitrove/page_pool.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pool/page_guard.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr std::uint64_t page = 4096;

PagePoolOptions pool_of(std::uint64_t pages) {
  PagePoolOptions options;
  options.page_bytes = page;
  options.pool_bytes = pages * page;
  options.staging_pages = 8;
  options.header_slots = 4;
  return options;
}

void fill(std::span<std::byte> bytes, int seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(static_cast<std::size_t>(seed) * 31 + i);
  }
}

bool holds(std::span<const std::byte> bytes, int seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != static_cast<std::byte>(static_cast<std::size_t>(seed) * 31 + i)) return false;
  }
  return true;
}

TEST(PagePool, GivesOneRunOfWholeRowsAndTheTailBehindThem) {
  PagePool pool(pool_of(16));
  const auto runs = pool.allocate(10, 1000, 50);
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->segments.size(), 1u);
  EXPECT_EQ(runs->segments[0].rows, 10u);
  EXPECT_EQ(runs->segments[0].bytes, 10050u);
  EXPECT_EQ(runs->pages(), 3u);
  EXPECT_EQ(runs->bytes(), 10050u);
  EXPECT_EQ(pool.free_pages(), 13u);
  pool.release(*runs);
  EXPECT_EQ(pool.free_pages(), 16u);
  EXPECT_EQ(pool.longest_free_run(), 16u);
}

TEST(PagePool, SegmentBytesLieInTheArenaAndNowhereElse) {
  PagePool pool(pool_of(4));
  const auto runs = pool.allocate(3, 4096);
  const auto bytes = pool.segment_bytes(runs->segments[0]);
  EXPECT_EQ(bytes.size(), 3 * page);
  EXPECT_GE(bytes.data(), pool.arena().data());
  EXPECT_LE(bytes.data() + bytes.size(), pool.arena().data() + 4 * page);
  EXPECT_EQ(pool.arena().size(), (4 + 8) * page + 4 * PagePool::header_slot_bytes);
}

// B64
TEST(PagePool, CanEverFitIsTrueUpToExactlyTheWholePool) {
  PagePool pool(pool_of(64));
  EXPECT_TRUE(pool.can_ever_fit(64, page));
  EXPECT_FALSE(pool.can_ever_fit(65, page));
  EXPECT_FALSE(pool.can_ever_fit(64, page, 1));
  EXPECT_TRUE(pool.can_ever_fit(63, page, page));
  const auto all = pool.allocate(64, page);
  ASSERT_TRUE(all);
  EXPECT_EQ(pool.free_pages(), 0u);
  EXPECT_FALSE(pool.allocate(1, 1));
  pool.release(*all);
}

TEST(PagePool, AbsurdSizesAreRefusedWithoutOverflow) {
  PagePool pool(pool_of(64));
  const std::uint64_t huge = ~std::uint64_t{0};
  const std::uint64_t wrap = std::uint64_t{1} << 32;  // wrap * wrap == 0 modulo 2^64
  EXPECT_FALSE(pool.can_ever_fit(wrap, wrap));
  EXPECT_FALSE(pool.can_ever_fit(huge, huge, huge));
  EXPECT_FALSE(pool.can_ever_fit(1, 1, huge));
  EXPECT_FALSE(pool.can_ever_fit(huge, 1));
  EXPECT_FALSE(pool.can_ever_fit(0, 16));
  EXPECT_FALSE(pool.can_ever_fit(16, 0));
  EXPECT_FALSE(pool.allocate(wrap, wrap));
  EXPECT_FALSE(pool.allocate(1, 1, huge));
  EXPECT_FALSE(pool.allocate(0, 16));
  EXPECT_FALSE(pool.allocate(16, 0));
  EXPECT_FALSE(pool.allocate_payload(0, 16));
  EXPECT_FALSE(pool.allocate_payload(16, 0));
  EXPECT_FALSE(pool.allocate_payload(huge, 1));
  EXPECT_FALSE(pool.borrow_staging(huge));
  EXPECT_EQ(pool.free_pages(), 64u);
}

TEST(PagePool, APoolOfZeroBytesKeepsStagingAndSlots) {
  PagePool pool(pool_of(0));
  EXPECT_EQ(pool.total_pages(), 0u);
  EXPECT_FALSE(pool.can_ever_fit(1, 1));
  EXPECT_FALSE(pool.allocate(1, 1));
  auto staging = pool.borrow_staging(8 * page);
  ASSERT_TRUE(staging);
  fill(staging->bytes(), 3);
  EXPECT_TRUE(holds(staging->bytes(), 3));
  EXPECT_TRUE(pool.borrow_header_slot());
  EXPECT_TRUE(pool.warnings().empty());
}

TEST(PagePool, NothingAtAllIsStillAPool) {
  PagePoolOptions options = pool_of(0);
  options.staging_pages = 0;
  options.header_slots = 0;
  PagePool pool(options);
  EXPECT_TRUE(pool.arena().empty());
  EXPECT_GE(pool.memfd(), 0);
  EXPECT_FALSE(pool.borrow_staging(1));
  EXPECT_FALSE(pool.borrow_header_slot());
}

TEST(PagePool, PoolBytesAreRoundedDownToWholePages) {
  PagePoolOptions options = pool_of(3);
  options.pool_bytes += page - 1;
  EXPECT_EQ(PagePool(options).total_pages(), 3u);
  options.pool_bytes = page - 1;
  PagePool none(options);
  EXPECT_EQ(none.total_pages(), 0u);
  ASSERT_EQ(none.warnings().size(), 1u);
}

TEST(PagePool, BadOptionsAreNamed) {
  const auto expect_bad = [](const PagePoolOptions& options, const std::string& word) {
    try {
      PagePool pool(options);
      ADD_FAILURE() << "accepted; expected an error about the " << word;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  PagePoolOptions options = pool_of(16);
  for (const std::uint64_t bad : {0ull, 1ull, 2048ull, 4097ull, 65535ull, 1ull << 31}) {
    options.page_bytes = bad;
    expect_bad(options, "page size");
  }
  options = pool_of(16);
  options.pool_bytes = ~std::uint64_t{0};
  expect_bad(options, "pool size");
  options.pool_bytes = std::uint64_t{1} << 50;
  expect_bad(options, "pool size");
}

TEST(PagePool, MemoryThatIsNotToBeHadIsUnavailable) {
  PagePoolOptions options = pool_of(0);
  options.page_bytes = std::uint64_t{1} << 30;
  options.pool_bytes = std::uint64_t{1} << 60;  // more than an address space
  try {
    PagePool pool(options);
    FAIL() << "mapped an exabyte";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
  }
}

std::uint64_t committed_bytes(const PagePool& pool) {
  struct stat status {};
  EXPECT_EQ(fstat(pool.memfd(), &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

TEST(PagePool, MemoryIsCommittedOnlyWhenWritten) {
  PagePoolOptions options = pool_of(0);
  options.pool_bytes = std::uint64_t{256} << 30;
  options.page_bytes = std::uint64_t{1} << 20;
  PagePool pool(options);
  EXPECT_EQ(committed_bytes(pool), 0u);
  auto runs = pool.allocate(1000, 4096);
  ASSERT_TRUE(runs);
  fill(pool.segment_bytes(runs->segments[0]), 5);
  EXPECT_GE(committed_bytes(pool), runs->bytes());
  EXPECT_LE(committed_bytes(pool), std::uint64_t{64} << 20);
  EXPECT_TRUE(holds(pool.segment_bytes(runs->segments[0]), 5));
}

// B68
TEST(PagePool, FreePagesInHolesAreUsedAndReadBackRight) {
  PagePool pool(pool_of(210));
  std::mt19937 random(3);
  const std::uint32_t sizes[] = {3, 7, 11};
  std::vector<PageRuns> held;
  for (std::size_t i = 0; i < 30; ++i) held.push_back(*pool.allocate(sizes[i % 3], page));
  EXPECT_EQ(pool.free_pages(), 0u);
  std::shuffle(held.begin(), held.end(), random);
  for (int i = 0; i < 15; ++i) {
    pool.release(held.back());
    held.pop_back();
  }
  const std::uint64_t free = pool.free_pages();
  ASSERT_LT(pool.longest_free_run(), free);

  const auto rest = pool.allocate(free, page);
  ASSERT_TRUE(rest);
  EXPECT_GT(rest->segments.size(), 1u);
  EXPECT_EQ(pool.free_pages(), 0u);
  for (std::size_t i = 0; i < held.size(); ++i) {
    fill(pool.segment_bytes(held[i].segments[0]), static_cast<int>(i));
  }
  std::vector<std::byte> value(rest->bytes());
  fill(value, 99);
  pool.copy_in(*rest, 0, value);
  std::vector<std::byte> back(value.size());
  pool.copy_out(*rest, 0, back);
  EXPECT_EQ(back, value);
  for (std::size_t i = 0; i < held.size(); ++i) {
    EXPECT_TRUE(holds(pool.segment_bytes(held[i].segments[0]), static_cast<int>(i)));
  }
}

TEST(PagePool, UsesAtMostThreeRunsWhereThreeAreEnough) {
  PagePool pool(pool_of(100));
  std::vector<PageRuns> held;
  for (int i = 0; i < 100; ++i) held.push_back(*pool.allocate(1, page));
  // Holes of 1 page everywhere, and three of 10.
  for (std::size_t i = 0; i < 100; ++i) {
    const bool long_hole = (i >= 10 && i < 20) || (i >= 40 && i < 50) || (i >= 70 && i < 80);
    if (long_hole || i % 2 == 1) pool.release(held[i]);
  }
  const auto runs = pool.allocate(27, page);
  ASSERT_TRUE(runs);
  EXPECT_LE(runs->segments.size(), PagePool::preferred_runs);
  pool.release(*runs);
  const auto more = pool.allocate(pool.free_pages(), page);
  ASSERT_TRUE(more);
  EXPECT_GT(more->segments.size(), PagePool::preferred_runs);
}

TEST(PagePool, RowsLargerThanAPageNeedAdjacentPages) {
  PagePool pool(pool_of(20));
  std::vector<PageRuns> held;
  for (int i = 0; i < 10; ++i) held.push_back(*pool.allocate(2, page));
  for (std::size_t i = 0; i < 10; i += 2) pool.release(held[i]);
  EXPECT_EQ(pool.free_pages(), 10u);
  EXPECT_EQ(pool.longest_free_run(), 2u);
  EXPECT_FALSE(pool.allocate(1, 3 * page));
  EXPECT_TRUE(pool.can_ever_fit(1, 3 * page));
  pool.release(held[1]);  // holes [0, 6)
  const auto runs = pool.allocate(2, 3 * page);
  ASSERT_TRUE(runs);
  EXPECT_EQ(runs->segments[0].rows, 2u);
}

TEST(PagePool, WouldFitTellsWhetherEvictingTheseRunsIsEnough) {
  PagePool pool(pool_of(20));
  std::vector<PageRuns> held;
  for (int i = 0; i < 10; ++i) {
    held.push_back(*pool.allocate(2, page));
    pool.set_owner(held.back(), static_cast<std::uint32_t>(i));
  }
  const auto run = [&](std::size_t i) { return held[i].segments[0].run; };
  const PageRun neighbours[] = {run(5), run(4)};
  const PageRun apart[] = {run(2), run(4), run(6), run(8)};
  EXPECT_TRUE(pool.would_fit(1, 4 * page, 0, neighbours));
  EXPECT_FALSE(pool.would_fit(1, 4 * page, 1, neighbours));
  EXPECT_FALSE(pool.would_fit(1, 3 * page, 0, apart));
  EXPECT_TRUE(pool.would_fit(8, page, 0, apart));
  EXPECT_FALSE(pool.would_fit(1, 1, 0, {}));

  // Asking changed nothing.
  EXPECT_EQ(pool.free_pages(), 0u);
  pool.check_invariants();
  const auto blocks = pool.blocks_around(run(4), 2);
  ASSERT_EQ(blocks.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(blocks[i], (PageBlock{run(3 + i), false, static_cast<std::uint32_t>(3 + i)}));
  }
  pool.release(held[4]);
  const PageRun gone[] = {run(5), run(4)};
  EXPECT_THROW(pool.would_fit(1, 1, 0, gone), std::logic_error);
  EXPECT_EQ(pool.free_pages(), 2u);
  pool.check_invariants();
}

TEST(PagePool, BlocksAroundStopsAtTheEndsOfThePool) {
  PagePool pool(pool_of(6));
  const auto first = *pool.allocate(2, page);
  const auto second = *pool.allocate(1, page);
  const auto all = pool.blocks_around(second.segments[0].run, 1000);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].run, first.segments[0].run);
  EXPECT_EQ(all[2], (PageBlock{{3, 3}, true, PageBlock::no_owner}));
  EXPECT_EQ(all, pool.blocks());
  EXPECT_EQ(pool.blocks_around(second.segments[0].run, 0).size(), 1u);
  EXPECT_EQ(pool.blocks_around({1, 1}, 0), pool.blocks_around(first.segments[0].run, 0));
  EXPECT_EQ(pool.blocks_around({4, 1}, 1).size(), 1u);
  EXPECT_EQ(pool.blocks_around({4, 1}, 2).size(), 2u);
  EXPECT_EQ(pool.blocks_around({0, 1}, 6), pool.blocks());
  EXPECT_TRUE(PagePool(pool_of(0)).blocks().empty());
}

TEST(PagePool, ReleasingTwiceThrowsAndHarmsNobody) {
  PagePool pool(pool_of(8));
  const auto mine = *pool.allocate(2, page);
  pool.release(mine);
  const auto theirs = *pool.allocate(3, page);
  fill(pool.segment_bytes(theirs.segments[0]), 1);
  EXPECT_THROW(pool.release(mine), std::logic_error);
  EXPECT_TRUE(holds(pool.segment_bytes(theirs.segments[0]), 1));
  EXPECT_EQ(pool.free_pages(), 5u);
}

// B33
TEST(PagePool, ReleasedPagesArePoisonedWhenAsked) {
  PagePoolOptions options = pool_of(8);
  options.poison_on_free = true;
  PagePool pool(options);
  const auto runs = *pool.allocate(3, 4000);
  const auto bytes = pool.segment_bytes(runs.segments[0]);
  fill(bytes, 1);
  pool.release(runs);
  if (is_access_forbidden(bytes.data())) {
    EXPECT_TRUE(is_access_forbidden(&bytes.back()));
    allow_access(bytes);
  }
  EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte b) { return b == PagePool::poison; }));
  const auto again = *pool.allocate(3, 4000);
  fill(pool.segment_bytes(again.segments[0]), 2);
  EXPECT_FALSE(is_access_forbidden(bytes.data()));
}

TEST(PagePool, ReleasedPagesAreLeftAloneWhenNotAsked) {
  PagePoolOptions options = pool_of(8);
  options.poison_on_free = false;
  PagePool pool(options);
  const auto runs = *pool.allocate(3, 4000);
  fill(pool.segment_bytes(runs.segments[0]), 1);
  pool.release(runs);
  EXPECT_TRUE(holds(pool.segment_bytes(runs.segments[0]), 1));
}

TEST(PagePool, StagingIsContiguousBoundedAndGivesItselfBack) {
  PagePool pool(pool_of(2));
  {
    auto first = pool.borrow_staging(3 * page + 1);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->bytes().size(), 3 * page + 1);
    EXPECT_EQ(pool.staging_pages_free(), 4u);
    EXPECT_FALSE(pool.borrow_staging(5 * page));
    EXPECT_FALSE(pool.borrow_staging(0));
    auto second = pool.borrow_staging(4 * page);
    ASSERT_TRUE(second);
    EXPECT_FALSE(pool.borrow_staging(1));
    fill(first->bytes(), 1);
    fill(second->bytes(), 2);
    EXPECT_TRUE(holds(first->bytes(), 1));
    EXPECT_TRUE(holds(second->bytes(), 2));

    PagePool::Staging moved = std::move(*first);
    EXPECT_EQ(pool.staging_pages_free(), 0u);
    moved = std::move(*second);  // what it held goes back at once
    EXPECT_EQ(pool.staging_pages_free(), 4u);
    EXPECT_TRUE(holds(moved.bytes(), 2));
  }
  EXPECT_EQ(pool.staging_pages_free(), 8u);
  EXPECT_TRUE(pool.borrow_staging(8 * page));
  pool.check_invariants();
}

TEST(PagePool, HeaderSlotsAreDistinctBoundedAndComeBack) {
  PagePool pool(pool_of(2));
  {
    std::vector<PagePool::HeaderSlot> slots;
    for (int i = 0; i < 4; ++i) {
      auto slot = pool.borrow_header_slot();
      ASSERT_TRUE(slot);
      fill(slot->bytes(), i);
      slots.push_back(std::move(*slot));
    }
    EXPECT_EQ(pool.header_slots_free(), 0u);
    EXPECT_FALSE(pool.borrow_header_slot());
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(holds(slots[static_cast<std::size_t>(i)].bytes(), i));
    }
    slots[0] = std::move(slots[1]);
    EXPECT_EQ(pool.header_slots_free(), 1u);
  }
  EXPECT_EQ(pool.header_slots_free(), 4u);
}

TEST(PagePool, ASecondMappingOfTheMemfdSeesTheSameBytes) {
  PagePool pool(pool_of(4));
  const auto runs = *pool.allocate(2, page);
  const auto bytes = pool.segment_bytes(runs.segments[0]);
  fill(bytes, 42);
  const std::size_t size = pool.arena().size();
  void* address = mmap(nullptr, size, PROT_READ, MAP_SHARED, pool.memfd(), 0);
  ASSERT_NE(address, MAP_FAILED);
  const auto offset = static_cast<std::size_t>(bytes.data() - pool.arena().data());
  const std::span<const std::byte> other(static_cast<std::byte*>(address) + offset, bytes.size());
  EXPECT_TRUE(holds(other, 42));
  fill(bytes, 43);
  EXPECT_TRUE(holds(other, 43));
  munmap(address, size);
}

TEST(PagePool, NobodyCanResizeTheMemfd) {
  PagePool pool(pool_of(4));
  ASSERT_TRUE(pool.warnings().empty());
  EXPECT_NE(ftruncate(pool.memfd(), 0), 0);
  EXPECT_NE(ftruncate(pool.memfd(), 1 << 30), 0);
}

TEST(PagePool, ThreadsAllocateWriteAndReleaseWithoutMeeting) {
  PagePool pool(pool_of(256));
  std::vector<std::jthread> threads;
  for (int id = 1; id <= 4; ++id) {
    threads.emplace_back([&pool, id] {
      std::mt19937 random(static_cast<unsigned>(id));
      for (int i = 0; i < 1000; ++i) {
        const auto runs = pool.allocate(1 + random() % 40, 3000, random() % 100);
        auto slot = pool.borrow_header_slot();
        auto staging = pool.borrow_staging(1 + random() % (2 * page));
        if (slot) fill(slot->bytes(), id);
        if (staging) fill(staging->bytes(), id);
        if (runs) {
          for (const auto& segment : runs->segments) fill(pool.segment_bytes(segment), id);
          for (const auto& segment : runs->segments) {
            EXPECT_TRUE(holds(pool.segment_bytes(segment), id));
          }
          pool.release(*runs);
        }
        EXPECT_TRUE(!slot || holds(slot->bytes(), id));
        EXPECT_TRUE(!staging || holds(staging->bytes(), id));
      }
    });
  }
  threads.clear();
  pool.check_invariants();
  EXPECT_EQ(pool.longest_free_run(), 256u);
  EXPECT_EQ(pool.staging_pages_free(), 8u);
  EXPECT_EQ(pool.header_slots_free(), 4u);
}

}  // namespace
}  // namespace vitrove
