#include "soak/soak.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <latch>

#include <malloc.h>
#include <unistd.h>

namespace vitrove::soak {
namespace {

using namespace std::chrono_literals;

constexpr double MiB = 1 << 20;
constexpr auto between_quiet_points = 2s;
constexpr int most_times_longer = 4;  // than asked for

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::uint64_t faults_of(const ControllerStats& stats) {
  std::uint64_t faults = 0;
  for (const StoreStats& store : stats.stores) {
    faults += store.get.faults + store.put.faults + store.exist.faults + store.remove.faults;
  }
  return faults;
}

std::uint64_t rejected_of(const ControllerStats& stats) {
  std::uint64_t rejected = 0;
  for (const auto& [reason, count] : stats.rejected) rejected += count;
  return rejected;
}

// Whoever hangs cannot be joined: say what happened and go.
[[noreturn]] void end_at_once(const char* why) {
  std::printf("soak: FAILED: %s\n", why);
  std::fflush(stdout);
  std::abort();
}

}  // namespace

std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

Soak::Soak(const SoakOptions& options)
    : options_(options), world_(options.policy, options.write_policy) {
  weather_ = std::make_unique<Weather>(world_, options_.seed);
  for (unsigned number = 0; number < options_.threads; ++number) {
    clients_.emplace_back([this, number] { work(number); });
  }
}

Soak::~Soak() {
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  clients_.clear();
  weather_.reset();
}

void Soak::work(unsigned number) {
  Client client(world_, options_.seed * 1000 + number);
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (resting_ && !ended_) {
        client.rest();
        ++at_rest_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return !resting_ || ended_; });
        --at_rest_;
      }
      if (ended_) return;
    }
    try {
      if (!world_.verdict().bad()) client.act();
    } catch (const std::exception& error) {
      world_.verdict().condemn(error.what());
    }
    if (world_.verdict().bad()) std::this_thread::yield();
  }
}

void Soak::stop_clients() {
  weather_->calm();
  std::unique_lock lock(mutex_);
  resting_ = true;
  if (!changed_.wait_for(lock, testing::patience,
                         [this] { return at_rest_ == options_.threads; })) {
    end_at_once("a client hangs in the cache");
  }
}

void Soak::start_clients() {
  {
    std::lock_guard lock(mutex_);
    resting_ = false;
  }
  changed_.notify_all();
  weather_->storm();
}

void Soak::inspect() {
  EmbeddingCacheController& cache = world_.cache();
  require(cache.wait_for_puts(Clock::now() + testing::patience), "puts do not end");
  // Loads that were left alone and calls that hung end by themselves now that the stores are well.
  const bool settled = testing::eventually([&] {
    const ControllerStats stats = cache.stats();
    return stats.entries_filling == 0 && stats.bytes_quarantined == 0 && stats.bytes_pinned == 0;
  });
  const ControllerStats stats = cache.stats();
  require(settled, "at rest, " + std::to_string(stats.bytes_pinned) + " bytes are pinned, " +
                       std::to_string(stats.bytes_quarantined) + " quarantined and " +
                       std::to_string(stats.entries_filling) + " entries filling");
  require(stats.bytes_used + stats.bytes_free == stats.pool_bytes, "pages are lost");
  cache.check_invariants();
  ++quiet_points_;
}

void Soak::flush_pool() {
  world_.cache().flush(FlushScope::local, std::nullopt, testing::request());
  const ControllerStats stats = world_.cache().stats();
  require(stats.bytes_used == 0 && stats.bytes_free == stats.pool_bytes,
          "a flush of the pool leaves " + std::to_string(stats.bytes_used) + " bytes in use");
}

// Since the pool was flushed last: one that is emptied before it is full evicts nothing.
bool Soak::has_evicted() {
  const std::uint64_t evictions = world_.cache().stats().evictions_space;
  return std::exchange(evictions_seen_, evictions) != evictions;
}

void Soak::burst() {
  const Picture picture = testing::picture(1'000'000 + bursts_++);
  const Item item{picture, testing::golden_bytes(picture)};
  std::atomic<int> encodes = 0;
  std::latch together(options_.threads);
  std::vector<std::jthread> callers;
  for (unsigned number = 0; number < options_.threads; ++number) {
    callers.emplace_back([&, number] {
      Client client(world_, number);
      together.arrive_and_wait();
      try {
        encodes += client.ask_for(item) ? 1 : 0;
      } catch (const std::exception& error) {
        world_.verdict().condemn(error.what());
      }
    });
  }
  callers.clear();
  require(encodes == 1, "a new item was encoded " + std::to_string(encodes) + " times by " +
                            std::to_string(options_.threads) + " callers at once");
}

void Soak::watch_memory() {
  malloc_trim(0);  // what is free is no leak
  const std::uint64_t memory = resident_bytes();
  const auto warm_up = std::min<std::chrono::duration<double>>(options_.time / 3.0, 30s);
  if (seconds_since(begin_) < warm_up.count()) {
    memory_after_warm_up_ = std::max(memory_after_warm_up_, memory);
    return;
  }
  if (memory_after_warm_up_ == 0) memory_after_warm_up_ = memory;
  most_memory_ = std::max(most_memory_, memory);
  trend_.add(seconds_since(begin_), memory);
  require(memory <= memory_after_warm_up_ + allowed_growth,
          "memory grew from " + std::to_string(memory_after_warm_up_ >> 20) + " MiB to " +
              std::to_string(memory >> 20));
}

void Soak::report_progress() {
  if (Clock::now() < next_report_) return;
  next_report_ += 10s;
  const ControllerStats stats = world_.cache().stats();
  const LookupStats& found = stats.lookups[static_cast<std::size_t>(Modality::image)];
  std::printf(
      "soak: %4.0f s  %llu operations, hits local %llu joined %llu store %llu, encodes %llu, "
      "%.0f MiB\n",
      seconds_since(begin_), static_cast<unsigned long long>(world_.tally().operations),
      static_cast<unsigned long long>(found.local), static_cast<unsigned long long>(found.joined),
      static_cast<unsigned long long>(found.store),
      static_cast<unsigned long long>(world_.tally().encodes),
      static_cast<double>(resident_bytes()) / MiB);
  std::fflush(stdout);
}

// A soak in which some of it did not happen shows nothing.
bool Soak::has_all_happened() {
  const ControllerStats stats = world_.cache().stats();
  const LookupStats& found = stats.lookups[static_cast<std::size_t>(Modality::image)];
  return found.local > 0 && found.joined > 0 && found.store > 0 && world_.tally().left > 0 &&
         stats.evictions_space > 0 && stats.evictions_flush > 0 && stats.evictions_removed > 0 &&
         faults_of(stats) > 0 && rejected_of(stats) > 0 && quiet_points_ > 1;
}

bool Soak::run() {
  std::printf(
      "soak: %lld s, %u clients, seed %u, policy %s, writes %s; memory may grow by %.0f MiB\n",
      static_cast<long long>(options_.time.count()), options_.threads, options_.seed,
      options_.policy.c_str(), std::string(to_string(options_.write_policy)).c_str(),
      static_cast<double>(allowed_growth) / MiB);
  std::fflush(stdout);
  // On a machine too slow for all of it in that time it takes longer, rather than show less.
  const auto end = begin_ + options_.time;
  const auto latest = begin_ + most_times_longer * options_.time;
  const auto goes_on = [&] {
    return Clock::now() < end || (is_long() && !has_all_happened() && Clock::now() < latest);
  };
  try {
    while (goes_on() && !world_.verdict().bad()) {
      const auto pause = Clock::now() + between_quiet_points;
      std::this_thread::sleep_until(Clock::now() < end ? std::min<Clock::time_point>(end, pause)
                                                       : pause);
      stop_clients();
      if (world_.verdict().bad()) break;
      inspect();
      if (quiet_points_ % 3 == 0 && has_evicted()) flush_pool();
      burst();
      inspect();
      watch_memory();
      report_progress();
      start_clients();
    }
  } catch (const std::exception& error) {
    world_.verdict().condemn(error.what());
  }
  return summarize();
}

void Soak::judge_trend() {
  if (trend_.seconds() < least_trend_seconds) return;
  const double growth = trend_.growth();
  std::printf("soak: memory rises by %.1f MiB in %.0f s; it may by %.0f\n", growth / MiB,
              trend_.seconds(), static_cast<double>(allowed_trend) / MiB);
  if (growth > static_cast<double>(allowed_trend)) {
    world_.verdict().condemn("memory does not stop growing");
  }
}

bool Soak::summarize() {
  const ControllerStats stats = world_.cache().stats();
  const LookupStats& found = stats.lookups[static_cast<std::size_t>(Modality::image)];
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf("soak: %llu operations, %llu views checked byte for byte, %d quiet points\n",
              number(world_.tally().operations), number(world_.tally().views_checked),
              quiet_points_);
  std::printf(
      "soak: hits local %llu joined %llu store %llu, misses %llu, encodes %llu, left %llu\n",
      number(found.local), number(found.joined), number(found.store), number(found.miss),
      number(world_.tally().encodes), number(world_.tally().left));
  std::printf(
      "soak: evictions %llu, flushed %llu, removed %llu, store faults %llu, values rejected "
      "%llu, uncached %llu\n",
      number(stats.evictions_space), number(stats.evictions_flush), number(stats.evictions_removed),
      number(faults_of(stats)), number(rejected_of(stats)),
      number(stats.uncached_too_large + stats.uncached_no_space));
  std::printf("soak: memory %.0f MiB after the warm-up, %.0f MiB at most since\n",
              static_cast<double>(memory_after_warm_up_) / MiB,
              static_cast<double>(most_memory_) / MiB);
  judge_trend();
  if (!world_.verdict().bad() && is_long() && !has_all_happened()) {
    world_.verdict().condemn(
        "hits, aborts, evictions, flushes, removals, faults or damage did not happen");
  }
  if (!world_.verdict().bad()) {
    std::printf("soak: passed\n");
  } else {
    std::printf("soak: FAILED: %s\n", world_.verdict().reason().c_str());
  }
  std::fflush(stdout);
  return !world_.verdict().bad();
}

}  // namespace vitrove::soak
