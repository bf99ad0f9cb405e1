#include <thread>

#include "unit/ranks/support.h"

namespace vitrove::testing {
namespace {

void play(int size, bool all_rank_get) {
  auto options = patient_options(all_rank_get);
  options.load_timeout = 150ms;
  Ranks ranks(size, options);
  std::vector<RoundsReport> reports(static_cast<std::size_t>(size));
  {
    std::vector<std::jthread> hosts;
    for (int rank = 0; rank < size; ++rank) {
      hosts.emplace_back([&, rank] {
        Rounds host(rank, size, ranks[rank], ranks.cache(rank));
        reports[static_cast<std::size_t>(rank)] = host.run(rounds(200), 7);
      });
    }
  }
  std::vector<std::vector<std::string>> lines;
  for (const auto& report : reports) {
    EXPECT_THAT(report.errors, ::testing::IsEmpty());
    EXPECT_GT(report.hits, 0U);
    ASSERT_EQ(report.lines.size(), reports[0].lines.size());
    lines.push_back(report.lines);
  }
  EXPECT_THAT(disagreements(lines), ::testing::IsEmpty());
  for (int rank = 0; rank < size; ++rank) ranks.leave(rank);
  for (int rank = 0; rank < size; ++rank) {
    if (ranks.cache(rank) == nullptr) continue;
    settle(ranks.controller(rank));
    ranks.controller(rank).check_invariants();
  }
}

TEST(RankRounds, ThreadsAgreeOnWhatRankZeroHas) { play(3, false); }

TEST(RankRounds, ThreadsAgreeOnWhatAllHave) { play(3, true); }

}  // namespace
}  // namespace vitrove::testing
