// The two operations over Gloo, among threads of one process. Where Vitrove is built without Gloo
// this file is not.
#include "vitrove/gloo_collectives.h"

#include <array>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "contract/temporary_directory.h"
#include "unit/ranks/support.h"

namespace vitrove::testing {
namespace {

class GlooGroup {
 public:
  explicit GlooGroup(int size) : members_(static_cast<std::size_t>(size)) {
    each([&](int rank) {
      GlooOptions options;
      options.rank = rank;
      options.size = size;
      options.directory = directory_.path();
      options.connect_timeout = patience;
      members_[static_cast<std::size_t>(rank)] = make_gloo_collectives(options);
    });
  }

  Collectives& operator[](int rank) { return *members_[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(members_.size()); }

  // At the same time on all ranks.
  void each(const std::function<void(int)>& body) const {
    std::vector<std::future<void>> bodies;
    bodies.reserve(members_.size());
    for (int rank = 0; rank < size(); ++rank) {
      bodies.push_back(std::async(std::launch::async, body, rank));
    }
    for (auto& done : bodies) done.get();
  }

 private:
  const TemporaryDirectory directory_;
  std::vector<std::unique_ptr<Collectives>> members_;
};

std::optional<ErrorCode> error_of(const std::function<void()>& call) {
  try {
    call();
    return std::nullopt;
  } catch (const Error& error) {
    return error.code();
  }
}

void vote(Collectives& rank, std::chrono::milliseconds timeout) {
  std::vector<std::int64_t> values{1};
  rank.all_reduce_min(values, timeout);
}

TEST(GlooCollectives, EverybodyHasWhatRankZeroSaid) {
  GlooGroup group(3);
  std::array<std::vector<std::byte>, 3> bytes;
  group.each([&](int rank) {
    auto& mine = bytes[static_cast<std::size_t>(rank)];
    mine.assign(100'000, static_cast<std::byte>(rank + 7));
    group[rank].broadcast(mine, patience);
  });
  for (const auto& of_rank : bytes) {
    EXPECT_EQ(of_rank, std::vector<std::byte>(100'000, std::byte{7}));
  }
}

TEST(GlooCollectives, TheLeastOfEachPlaceStandsEverywhere) {
  GlooGroup group(3);
  std::array<std::vector<std::int64_t>, 3> values{{{5, -1, 8}, {6, 0, 7}, {4, 1, 9}}};
  group.each([&](int rank) {
    group[rank].all_reduce_min(values[static_cast<std::size_t>(rank)], patience);
  });
  for (const auto& of_rank : values) EXPECT_EQ(of_rank, (std::vector<std::int64_t>{4, -1, 7}));
}

TEST(GlooCollectives, ARankThatDoesNotComeIsADeadlineAndTheEndOfTheGroup) {
  GlooGroup group(2);
  EXPECT_EQ(error_of([&] { vote(group[0], 50ms); }), ErrorCode::deadline_exceeded);
  EXPECT_TRUE(error_of([&] { vote(group[0], 50ms); }));
}

TEST(GlooCollectives, ARankThatClosesIsNoticedAtOnceByWhoeverWaitsForIt) {
  GlooGroup group(2);
  auto waiting =
      std::async(std::launch::async, [&] { return error_of([&] { vote(group[0], patience); }); });
  group[1].close();
  EXPECT_EQ(waiting.get(), ErrorCode::unavailable);
  EXPECT_TRUE(error_of([&] { vote(group[1], patience); }));
}

TEST(GlooCollectives, AGroupCanBeClosedFromAnotherThreadThanItsCallers) {
  GlooGroup group(2);
  auto waiting =
      std::async(std::launch::async, [&] { return error_of([&] { vote(group[0], patience); }); });
  group[0].close();
  EXPECT_TRUE(waiting.get());
}

}  // namespace
}  // namespace vitrove::testing
