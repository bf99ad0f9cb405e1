// One rank as a process of its own, over Gloo: plays random rounds and prints what it was told.
//
//   rank_process RANK SIZE DIRECTORY all|first ROUNDS SEED [freeze|die]
//   rank_process RANK SIZE DIRECTORY all|first fill POOL_BYTES
//
// With "fill", it takes its share of a pool of so many bytes, fills it, and prints one line: the
// bytes of its pages, of its arena, and of the shared memory that the kernel counts for it.
//
// With the last word, the highest rank stops in its tracks, or is gone, after the rounds, and the
// others ask on until they are told that the group has failed. Exit codes: 0 well, 1 wrong, 3 told.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include "base/log.h"
#include "ranks/rounds.h"
#include "vitrove/file_store.h"
#include "vitrove/gloo_collectives.h"

namespace vitrove::testing {
namespace {

struct Arguments {
  int rank = 0;
  int size = 1;
  std::filesystem::path directory;
  bool all_rank_get = false;
  int rounds = 0;
  std::uint64_t seed = 0;
  std::string end;
  std::optional<std::uint64_t> pool_bytes;
};

int print(const RoundsReport& report) {
  for (const auto& line : report.lines) std::cout << line << '\n';
  for (const auto& error : report.errors) std::cerr << error << '\n';
  std::cerr << report.hits << " hits, longest round " << report.longest.count() << " ms\n";
  // Field case B58: no hang.
  return report.errors.empty() && report.longest < 10s && report.hits > 0 ? 0 : 1;
}

// Other requests until the group fails; none may take longer than the case allows.
int ask_until_told(RankAgreement& agreement) {
  const auto deadline = Clock::now() + patience;
  for (int i = 0; Clock::now() < deadline; ++i) {
    const auto start = Clock::now();
    try {
      const std::string id = "after " + std::to_string(i);
      agreement.prefetch(id, {picture(i % 24).expectation()});
      agreement.wait(id);
    } catch (const Error& error) {
      std::cerr << error.what() << '\n';
      return error.code() == ErrorCode::unavailable && Clock::now() - start < 10s ? 3 : 1;
    }
    std::this_thread::sleep_for(10ms);
  }
  return 1;
}

ControllerOptions share_of(const Arguments& given) {
  ControllerOptions options;
  options.pool.pool_bytes =
      rank_pool_bytes(*given.pool_bytes, given.rank, given.size, given.all_rank_get);
  options.put_after_uses = 1000;  // the store is not what is measured
  return options;
}

std::uint64_t shared_memory_in_use() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssShmem:")) return std::stoull(line.substr(9)) * 1024;
  }
  throw std::runtime_error("the kernel does not count shared memory");
}

int fill(RankCache* cache) {
  std::uint64_t data = 0;
  std::uint64_t arena = 0;
  if (cache != nullptr) {
    PagePool& pool = ControllerAccess::impl(cache->controller).core->pool();
    data = pool.total_pages() * pool.page_bytes();
    arena = pool.arena().size();
    const Picture large = picture(0, 4096);
    const auto rows = large.golden();
    for (int i = 0; cache->controller.stats().evictions_space == 0; ++i) {
      auto ticket = lead(cache->controller, picture(i, large.rows));
      ticket.publish({bytes_of(rows), large.rows, large.side(), 1ms});
    }
  }
  std::cout << data << ' ' << arena << ' ' << shared_memory_in_use() << std::endl;
  return 0;
}

int run(const Arguments& given) {
  GlooOptions gloo;
  gloo.rank = given.rank;
  gloo.size = given.size;
  gloo.directory = given.directory / "group";
  gloo.connect_timeout = 60s;
  auto collectives = make_gloo_collectives(gloo);

  std::unique_ptr<RankCache> cache;
  if (given.rank == 0 || given.all_rank_get) {
    FileStoreOptions store;
    store.root = given.directory / "store";
    cache = std::make_unique<RankCache>(make_file_store(store),
                                        given.pool_bytes ? share_of(given) : small_pool(12));
  }
  RankOptions options;
  options.all_rank_get = given.all_rank_get;
  options.timeout = given.end.empty() ? 8s : 4s;
  options.load_timeout = 150ms;
  options.heartbeat = 200ms;
  options.pool_bytes = given.pool_bytes;
  RankAgreement agreement(std::move(collectives), cache ? std::move(cache->source) : nullptr,
                          options);
  if (given.pool_bytes) return fill(cache.get());
  Rounds rounds(given.rank, given.size, agreement, cache.get());
  const int result = print(rounds.run(given.rounds, given.seed));
  if (result != 0) return result;
  // Whoever is first may leave: what it was told is told to all.
  if (given.end.empty()) return 0;
  if (given.rank != given.size - 1) return ask_until_told(agreement);
  std::cout.flush();
  if (given.end == "freeze") ::raise(SIGSTOP);
  ::_exit(0);
}

}  // namespace
}  // namespace vitrove::testing

int main(int count, char** words) {
  if (count < 7) return 2;
  vitrove::logger()->set_level(spdlog::level::off);
  const auto number = [&](int at) { return std::strtol(words[at], nullptr, 10); };
  vitrove::testing::Arguments given;
  given.rank = static_cast<int>(number(1));
  given.size = static_cast<int>(number(2));
  given.directory = words[3];
  given.all_rank_get = std::string(words[4]) == "all";
  given.rounds = static_cast<int>(number(5));
  given.seed = static_cast<std::uint64_t>(number(6));
  if (std::string(words[5]) == "fill") given.pool_bytes = given.seed;
  if (count > 7) given.end = words[7];
  try {
    return vitrove::testing::run(given);
  } catch (const vitrove::Error& error) {
    std::cerr << error.what() << ": " << error.detail() << '\n';
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
  }
  return 1;
}
