// What the soak takes for a leak.
#include "soak/memory_trend.h"

#include <random>

#include <gtest/gtest.h>

namespace vitrove::soak {
namespace {

constexpr double mib = 1 << 20;

// Memory that is looked at every two seconds, and scatters by so much.
MemoryTrend trend_of(int samples, double mib_per_minute, double scatter_mib) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> scatter(-scatter_mib, scatter_mib);
  MemoryTrend trend;
  for (int i = 0; i < samples; ++i) {
    const double memory = 100 + mib_per_minute * i / 30 + scatter(random);
    trend.add(2.0 * i, static_cast<std::uint64_t>(memory * mib));
  }
  return trend;
}

TEST(MemoryTrend, OfNothingIsFlat) {
  MemoryTrend trend;
  EXPECT_EQ(trend.growth(), 0);
  trend.add(1, 100);
  EXPECT_EQ(trend.growth(), 0);
  EXPECT_EQ(trend.seconds(), 0);
}

TEST(MemoryTrend, FindsASlowLeakUnderNoise) {
  const MemoryTrend trend = trend_of(150, 4, 5);
  EXPECT_NEAR(trend.growth() / mib, 4 * trend.seconds() / 60, 3);
}

TEST(MemoryTrend, TakesNeitherNoiseNorPeaksForALeak) {
  EXPECT_NEAR(trend_of(150, 0, 5).growth() / mib, 0, 3);
  MemoryTrend peaks;
  for (int i = 0; i < 150; ++i) {
    peaks.add(2.0 * i, static_cast<std::uint64_t>((i > 120 && i % 3 == 0 ? 400 : 100) * mib));
  }
  EXPECT_NEAR(peaks.growth() / mib, 0, 1);
}

TEST(MemoryTrend, OfALongTimeNeedsNoMoreRoomAndFindsLess) {
  const MemoryTrend trend = trend_of(30'000, 0.01, 5);
  EXPECT_NEAR(trend.seconds(), 60'000, 200);
  EXPECT_NEAR(trend.growth() / mib, 10, 3);
}

}  // namespace
}  // namespace vitrove::soak
