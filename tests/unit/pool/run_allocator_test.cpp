#include "pool/run_allocator.h"

#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace vitrove {
namespace {

PageRun take(RunAllocator& pages, std::uint32_t count) {
  const auto fit = pages.best_fit(count);
  EXPECT_TRUE(fit);
  return pages.take(*fit, count);
}

TEST(RunAllocator, AnEmptyAreaIsOneFreeRun) {
  RunAllocator pages(1000);
  EXPECT_EQ(pages.longest(), (PageRun{0, 1000}));
  EXPECT_EQ(pages.best_fit(1000), (PageRun{0, 1000}));
  EXPECT_EQ(pages.best_fit(1001), std::nullopt);
  EXPECT_EQ(pages.best_fit(0), std::nullopt);
  pages.check_invariants();
}

TEST(RunAllocator, NoPagesAtAllIsAllowed) {
  RunAllocator pages(0);
  EXPECT_EQ(pages.best_fit(1), std::nullopt);
  EXPECT_EQ(pages.longest(), std::nullopt);
  pages.check_invariants();
}

TEST(RunAllocator, ReleasedNeighboursBecomeOneRunInEveryOrder) {
  std::vector<int> order{0, 1, 2};
  do {
    RunAllocator pages(9);
    std::vector<PageRun> runs;
    for (int i = 0; i < 3; ++i) runs.push_back(take(pages, 3));
    for (const int i : order) {
      pages.release(runs[static_cast<std::size_t>(i)]);
      pages.check_invariants();
    }
    EXPECT_EQ(pages.longest(), (PageRun{0, 9}));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(RunAllocator, PrefersTheSmallestRunThatFits) {
  RunAllocator pages(100);
  const PageRun hole_of_9 = take(pages, 9);
  take(pages, 1);
  const PageRun hole_of_5 = take(pages, 5);
  take(pages, 1);
  const PageRun hole_of_7 = take(pages, 7);
  take(pages, 1);
  for (const PageRun& run : {hole_of_9, hole_of_5, hole_of_7}) pages.release(run);
  EXPECT_EQ(pages.best_fit(6), hole_of_7);
  EXPECT_EQ(pages.best_fit(5), hole_of_5);
  EXPECT_EQ(pages.best_fit(1), hole_of_5);
  EXPECT_EQ(pages.best_fit(8), hole_of_9);
}

TEST(RunAllocator, FindsTheOnlyRunThatFitsAmongLongRunsOfOneBin) {
  // 1024 to 1031 pages share a bin.
  RunAllocator pages(10000);
  std::vector<PageRun> holes;
  for (std::uint32_t size = 1024; size < 1032; ++size) {
    holes.push_back(take(pages, size));
    take(pages, 1);
  }
  take(pages, pages.free_pages());
  std::swap(holes[3], holes[7]);  // the longest neither first nor last in the bin
  for (const PageRun& run : holes) pages.release(run);
  std::swap(holes[3], holes[7]);
  EXPECT_EQ(pages.best_fit(1031), holes.back());
  EXPECT_EQ(pages.longest(), holes.back());
  EXPECT_EQ(pages.best_fit(1032), std::nullopt);
  pages.check_invariants();
}

TEST(RunAllocator, ShrinkGivesTheRestBackToTheFreeNeighbour) {
  RunAllocator pages(10);
  const PageRun run = take(pages, 6);
  pages.shrink(run, 2);
  EXPECT_EQ(pages.longest(), (PageRun{2, 8}));
  pages.release({0, 2});
  EXPECT_EQ(pages.longest(), (PageRun{0, 10}));
  pages.check_invariants();
}

TEST(RunAllocator, CarveUndoesARelease) {
  RunAllocator pages(12);
  const PageRun first = take(pages, 4);
  const PageRun middle = take(pages, 4);
  pages.release(first);
  const PageRun merged = pages.release(middle);
  EXPECT_EQ(merged, (PageRun{0, 12}));
  pages.carve(merged, middle);
  pages.check_invariants();
  EXPECT_TRUE(pages.is_taken(middle));
  EXPECT_EQ(pages.free_pages(), 8u);
  EXPECT_EQ(pages.longest()->count, 4u);
}

TEST(RunAllocator, ReleasingWhatIsNotTakenIsFoundOutAndChangesNothing) {
  RunAllocator pages(16);
  const PageRun run = take(pages, 4);
  const PageRun other = take(pages, 4);
  pages.release(run);
  const PageRun wrong[] = {run, {4, 3}, {5, 3}, {0, 8}, {8, 8}, {16, 1}, {12, 9}, {~0u, 2}, {4, 0}};
  for (const PageRun& bad : wrong) EXPECT_THROW(pages.release(bad), std::logic_error);
  pages.check_invariants();
  EXPECT_EQ(pages.free_pages(), 12u);
  pages.release(other);
  EXPECT_EQ(pages.longest(), (PageRun{0, 16}));
}

TEST(RunAllocator, ADoubleReleaseIsFoundOutAfterThePagesMerged) {
  RunAllocator pages(16);
  const PageRun run = take(pages, 4);
  const PageRun next = take(pages, 4);
  pages.release(next);
  pages.release(run);
  EXPECT_THROW(pages.release(next), std::logic_error);
  EXPECT_THROW(pages.release(run), std::logic_error);
}

TEST(RunAllocator, KnowsTheBlocksBesideARunAndTheirOwners) {
  RunAllocator pages(10);
  const PageRun left = take(pages, 3);
  const PageRun right = take(pages, 2);
  pages.set_owner(left, 77);
  EXPECT_EQ(pages.block_before(right.first), (PageBlock{left, false, 77}));
  EXPECT_EQ(pages.block_from(5), (PageBlock{{5, 5}, true, PageBlock::no_owner}));
  pages.release(left);
  EXPECT_EQ(pages.block_before(right.first), (PageBlock{left, true, PageBlock::no_owner}));
}

// A plain map of pages, walked from end to end.
class MapModel {
 public:
  explicit MapModel(std::uint32_t pages) : taken_(pages, false) {}

  void set(const PageRun& run, bool taken) {
    for (std::uint32_t page = run.first; page < run.first + run.count; ++page) {
      ASSERT_NE(taken_[page], taken) << "page " << page << " given or returned twice";
      taken_[page] = taken;
    }
  }

  std::vector<std::uint32_t> free_run_lengths() const {
    std::vector<std::uint32_t> lengths;
    std::uint32_t length = 0;
    for (const bool taken : taken_) {
      if (!taken) ++length;
      if (taken && length > 0) lengths.push_back(length);
      if (taken) length = 0;
    }
    if (length > 0) lengths.push_back(length);
    return lengths;
  }

 private:
  std::vector<bool> taken_;
};

TEST(RunAllocator, AgreesWithAPageMapOverAHundredThousandSteps) {
  constexpr std::uint32_t area = 512;
  std::mt19937 random(11);
  RunAllocator pages(area);
  MapModel model(area);
  std::vector<PageRun> taken;
  for (int step = 0; step < 100000; ++step) {
    const bool full = pages.free_pages() < area / 10;
    if (taken.empty() || (!full && random() % 2 == 0)) {
      const std::uint32_t wanted = 1 + random() % (random() % 50 == 0 ? 300 : 12);
      const auto lengths = model.free_run_lengths();
      const auto longest = lengths.empty() ? 0 : *std::ranges::max_element(lengths);
      const auto fit = pages.best_fit(wanted);
      ASSERT_EQ(fit.has_value(), wanted <= longest);
      if (!fit) continue;
      auto smallest = longest;
      for (const auto length : lengths) {
        if (length >= wanted) smallest = std::min(smallest, length);
      }
      ASSERT_LE(fit->count, smallest + smallest / 128);
      taken.push_back(pages.take(*fit, wanted));
      model.set(taken.back(), true);
    } else {
      std::swap(taken[random() % taken.size()], taken.back());
      model.set(taken.back(), false);
      pages.release(taken.back());
      taken.pop_back();
    }
    if (step % 100 == 0) pages.check_invariants();
    if (HasFatalFailure()) return;
  }
  for (const PageRun& run : taken) pages.release(run);
  EXPECT_EQ(pages.longest(), (PageRun{0, area}));
  pages.check_invariants();
}

}  // namespace
}  // namespace vitrove
