#include "server/hit_history.h"

#include <gtest/gtest.h>

namespace vitrove {
namespace {

using namespace std::chrono_literals;

const HitHistory::Clock::time_point start{};

std::vector<ModelLookups> counted(std::uint64_t hits, std::uint64_t misses) {
  ModelLookups line;
  line.lookups.local = hits;
  line.lookups.miss = misses;
  return {line};
}

HitCounts since(const HitHistory& history, HitHistory::Clock::duration age,
                HitHistory::Clock::duration window, const std::vector<ModelLookups>& now) {
  return history.since(start + age, window, now).at(0);
}

TEST(HitCounts, EverySourceButAnEncodeIsAHit) {
  const HitCounts counts = hit_counts({.local = 1, .joined = 2, .store = 3, .miss = 4});
  EXPECT_EQ(counts.hits, 6u);
  EXPECT_EQ(counts.lookups, 10u);
  EXPECT_DOUBLE_EQ(*counts.ratio(), 0.6);
  EXPECT_FALSE(HitCounts{}.ratio());
}

TEST(HitHistory, BeforeTheFirstSampleEverythingCounts) {
  const HitHistory history;
  EXPECT_EQ(since(history, 5s, 1min, counted(3, 1)).lookups, 4u);
}

TEST(HitHistory, AWindowSeesWhatCameInItAndNoMore) {
  HitHistory history;
  // A hit a second for an hour and a half, then ten minutes of misses alone.
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  for (int second = 0; second <= 6000; second += 10) {
    history.sample(start + std::chrono::seconds(second), counted(hits, misses));
    (second < 5400 ? hits : misses) += 10;
  }
  const auto now = counted(5400, 600);
  const HitCounts minute = since(history, 6000s, 1min, now);
  EXPECT_EQ(minute.hits, 0u);
  EXPECT_EQ(minute.lookups, 60u);
  EXPECT_EQ(since(history, 6000s, 10min, now).lookups, 600u);
  const HitCounts hour = since(history, 6000s, 60min, now);
  EXPECT_EQ(hour.hits, 3000u);
  EXPECT_EQ(hour.lookups, 3600u);
  EXPECT_DOUBLE_EQ(*hour.ratio(), 3000.0 / 3600);
}

TEST(HitHistory, SamplesFarApartMakeTheWindowLongerAndNeverShorter) {
  HitHistory history;
  history.sample(start, counted(0, 0));
  history.sample(start + 300s, counted(300, 0));
  EXPECT_EQ(since(history, 310s, 1min, counted(310, 0)).hits, 310u);
  EXPECT_EQ(since(history, 360s, 1min, counted(360, 0)).hits, 60u);
}

TEST(HitHistory, IsDueEveryTenSeconds) {
  HitHistory history;
  EXPECT_TRUE(history.is_due(start));
  history.sample(start, counted(0, 0));
  EXPECT_FALSE(history.is_due(start + 9s));
  EXPECT_TRUE(history.is_due(start + 10s));
}

TEST(HitHistory, ALineThatIsNewSinceTheSampleCountsWhole) {
  HitHistory history;
  history.sample(start, counted(5, 0));
  std::vector<ModelLookups> now = counted(7, 0);
  now.push_back(counted(0, 4)[0]);
  const auto counts = history.since(start + 1min, 1min, now);
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0].hits, 2u);
  EXPECT_EQ(counts[1].lookups, 4u);
}

}  // namespace
}  // namespace vitrove
