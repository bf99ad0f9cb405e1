// A process that was told twice to end does end, whichever moment the second signal comes at.
#include "cli/stop_signals.h"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <thread>

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "cli/commands.h"
#include "server/encode_server.h"

namespace vitrove::cli {
namespace {

using std::chrono::milliseconds;

ServerConfig config_of_a_stub() {
  ServerConfig config;
  config.encoder = "stub:dim=8,tokens=2,seed=1";
  config.stores = {"none"};
  config.pool_size = std::uint64_t{8} << 20;
  config.port = 0;
  return config;
}

bool is_pending() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGTERM) == 1;
}

// Returns when the watching thread has taken it.
void send_and_wait() {
  kill(getpid(), SIGTERM);
  while (is_pending()) std::this_thread::sleep_for(milliseconds(1));
}

// What runs in a process of its own: the drain is over, but the server has not said so yet.
[[noreturn]] void be_told_twice_between_drain_and_leaving() {
  StopSignals signals(std::chrono::hours(1));
  EncodeServer server(config_of_a_stub());
  server.start();
  signals.drain(server);
  send_and_wait();
  server.wait();
  send_and_wait();
  std::this_thread::sleep_for(milliseconds(200));  // the server hears of it now, too late
  signals.leaving();
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));  // an encoder that runs for nobody
}

TEST(StopSignalsDeathTest, ASecondSignalEndsAServerThatHadDrainedAlready) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(be_told_twice_between_drain_and_leaving(), testing::ExitedWithCode(exit_failed), "");
}

}  // namespace
}  // namespace vitrove::cli
