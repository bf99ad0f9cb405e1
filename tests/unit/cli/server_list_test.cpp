// Which of several servers the next file of `vitrove encode` goes to (field case B61).
#include "cli/server_list.h"

#include <future>
#include <vector>

#include <gtest/gtest.h>

namespace vitrove::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Ended = ServerList::Ended;

class ServersOfEncode : public ::testing::Test {
 protected:
  ServerList::Call next(std::vector<bool> tried = {false, false}) {
    return servers_.next(tried).value();
  }
  // Both have answered a file, each in 10 ms.
  void let_both_answer() {
    const auto first = next();
    const auto second = next();
    now_ += milliseconds(10);
    servers_.ended(first, Ended::answered);
    servers_.ended(second, Ended::answered);
  }

  ServerList::Clock::time_point now_ = ServerList::Clock::now();
  ServerList servers_{{"http://a", "http://b"}, [this] { return now_; }};
};

TEST_F(ServersOfEncode, GetNoSecondFileBeforeTheyAnsweredAFirst) {
  const auto hanging = next();
  const auto good = next();
  EXPECT_NE(hanging.server, good.server);
  auto waiting = std::async(std::launch::async, [&] { return next(); });
  servers_.ended(good, Ended::answered);
  EXPECT_EQ(waiting.get().server, good.server);
  for (int file = 0; file < 20; ++file) EXPECT_EQ(next().server, good.server) << file;
}

TEST_F(ServersOfEncode, ShareTheFilesWhileBothAnswer) {
  let_both_answer();
  std::vector<int> files(2);
  for (int file = 0; file < 20; ++file) ++files[next().server];
  EXPECT_EQ(files, std::vector<int>({10, 10}));
}

TEST_F(ServersOfEncode, ComeLastWhileACallOfTheirsTakesLong) {
  let_both_answer();
  const auto hanging = next();
  now_ += milliseconds(100);
  for (int file = 0; file < 20; ++file) EXPECT_NE(next().server, hanging.server) << file;
  EXPECT_EQ(next({hanging.server == 1, hanging.server == 0}).server, hanging.server)
      << "nobody else is left";
  now_ += milliseconds(100);
  EXPECT_NE(next().server, hanging.server) << "both take long, and this one longer";
}

TEST_F(ServersOfEncode, AreAskedHowTheyAreBeforeTheyGetAFileAgain) {
  EXPECT_TRUE(next().is_trial);
  EXPECT_TRUE(next().is_trial);
}

TEST_F(ServersOfEncode, GetOneFileWhenTheyMayBeBack) {
  let_both_answer();
  const auto killed = next();
  servers_.ended(killed, Ended::away);
  const std::size_t other = 1 - killed.server;
  for (int file = 0; file < 20; ++file) EXPECT_EQ(next().server, other) << file;

  now_ += seconds(6);
  std::vector<ServerList::Call> trials;
  for (int file = 0; file < 20; ++file) {
    const auto call = next();
    if (call.server == killed.server) trials.push_back(call);
  }
  ASSERT_EQ(trials.size(), 1u) << "until it has answered";
  EXPECT_TRUE(trials[0].is_trial);

  servers_.ended(trials[0], Ended::answered);
  EXPECT_EQ(next().server, killed.server) << "it has the fewest calls";
  EXPECT_FALSE(next().is_trial);
}

TEST_F(ServersOfEncode, AreLeftAloneForLongerEachTime) {
  let_both_answer();
  const auto killed = next();
  servers_.ended(killed, Ended::away);
  now_ += seconds(6);
  const auto trial = next({killed.server == 1, killed.server == 0});
  ASSERT_EQ(trial.server, killed.server);
  servers_.ended(trial, Ended::away);
  now_ += seconds(6);
  EXPECT_NE(next().server, killed.server);
}

TEST_F(ServersOfEncode, AreAllTriedWhenAllAreAway) {
  servers_.ended(next(), Ended::away);
  servers_.ended(next(), Ended::away);
  const auto first = next();
  const auto second = next();  // needs not wait: nothing better will come
  EXPECT_TRUE(first.is_trial && second.is_trial);
  EXPECT_FALSE(servers_.next({true, true}).has_value());
}

TEST(OneServerOfEncode, GetsAsManyFilesAsThereAreJobs) {
  ServerList servers({"http://a"});
  for (int file = 0; file < 4; ++file) EXPECT_TRUE(servers.next({false}).has_value());
}

}  // namespace
}  // namespace vitrove::cli
