// The run: clients and weather for some seconds, then a quiet point where everything must be in
// order, over and over until the time is up.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "soak/client.h"
#include "soak/memory_trend.h"
#include "soak/weather.h"
#include "soak/world.h"

namespace vitrove::soak {

struct SoakOptions {
  std::chrono::seconds time{60};
  unsigned threads = 6;
  unsigned seed = 1;
  std::string policy = "gdsf";
  WritePolicy write_policy = WritePolicy::through;
};

// Memory that this process has in use, in bytes.
std::uint64_t resident_bytes();

// By how much memory may exceed what it was after the warm-up, which is a third of the time and at
// most 30 seconds. Sanitizers keep what was freed, and shadow memory besides.
constexpr std::uint64_t allowed_growth = std::uint64_t{testing::is_sanitized ? 512 : 32} << 20;

// By how much the line through all that is seen after the warm-up may rise, once that is two
// minutes: of a longer soak less in an hour.
constexpr std::uint64_t allowed_trend = allowed_growth / 4;
constexpr double least_trend_seconds = 120;

class Soak {
 public:
  explicit Soak(const SoakOptions& options);
  ~Soak();

  // True when everything held. Prints progress and a summary.
  bool run();

 private:
  using Clock = std::chrono::steady_clock;

  void work(unsigned number);
  void stop_clients();
  void start_clients();
  // Pins at zero, no page lost, nothing half done.
  void inspect();
  void flush_pool();
  bool has_evicted();
  bool is_long() const { return options_.time >= std::chrono::seconds(10); }
  bool has_all_happened();
  // All clients at once ask for an item that nobody has seen: one of them encodes.
  void burst();
  void watch_memory();
  void judge_trend();
  void report_progress();
  bool summarize();

  const SoakOptions options_;
  const Clock::time_point begin_ = Clock::now();
  World world_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool resting_ = false;
  bool ended_ = false;
  unsigned at_rest_ = 0;
  std::uint64_t memory_after_warm_up_ = 0;
  std::uint64_t most_memory_ = 0;
  MemoryTrend trend_;
  int quiet_points_ = 0;
  std::uint64_t evictions_seen_ = 0;
  int bursts_ = 0;
  Clock::time_point next_report_ = begin_ + std::chrono::seconds(10);
  std::unique_ptr<Weather> weather_;
  std::vector<std::jthread> clients_;
};

}  // namespace vitrove::soak
