// Eviction policies: how much encode time each saves on one trace at equal pool size, beside LRU,
// and how far that is from what is possible offline; and that what is asked for again and again
// outlasts a scan of media that nobody asks for twice.
//
//   bench_eviction [--trace FILE] [--requests N] [--seed N]
//
// FILE: JSON lines as `vitrove bench trace` reads them.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "harness.h"
#include "simulation/offline_bounds.h"
#include "simulation/replay.h"
#include "simulation/trace_maker.h"
#include "simulation/trace_reader.h"

namespace {

using namespace vitrove;
using bench::Harness;
using simulation::Trace;

void replay(Harness& harness, const std::string& name, const Trace& trace) {
  const simulation::TraceTotals totals = simulation::totals_of(trace);
  if (!harness.json()) {
    std::printf("trace \"%s\": %zu requests for %llu media of %.1f GB; in %% of all encode time\n",
                name.c_str(), trace.size(), static_cast<unsigned long long>(totals.media),
                static_cast<double>(totals.media_bytes) / 1e9);
  }
  for (const std::uint64_t thousandths : {5, 10, 20, 50}) {
    const std::uint64_t capacity = totals.media_bytes / 1000 * thousandths;
    char pool[32];
    std::snprintf(pool, sizeof pool, "_pool_%.1f%%", static_cast<double>(thousandths) / 10);
    const auto saved = [&](std::string_view policy) {
      return 100 * simulation::replay(trace, policy, capacity).saved_us / totals.cost_us;
    };
    const auto offline = simulation::offline_bounds(trace, capacity);
    const double most = 100 * offline.most_us / totals.cost_us;
    const std::string gdsf = "saved_" + name + "_gdsf" + pool;
    const std::string s3fifo = "saved_" + name + "_s3fifo" + pool;
    const double lru = saved("lru");
    const double by_gdsf = saved("gdsf");
    // GDSF is what promises to beat LRU; S3-FIFO knows nothing of costs.
    harness.record({gdsf, "%", "lru", bench::ratio_at_least(1)}, by_gdsf, lru);
    harness.record({gdsf + "_of_possible", "%", "offline, at most"}, by_gdsf, most);
    harness.record({s3fifo, "%", "lru"}, saved("s3fifo"), lru);
    harness.record({"saved_" + name + "_offline" + pool, "%", "offline, at most"},
                   100 * offline.least_us / totals.cost_us, most);
  }
}

// A hundred media that are asked for all the time, and scans that would fill the pool with media
// that nobody asks for again.
double hit_ratio_under_scans(std::string_view policy) {
  constexpr std::uint64_t favourites = 100;
  constexpr std::uint64_t pool = 200;
  constexpr int rounds = 100;
  simulation::SimulatedCache cache(policy, pool);
  std::uint64_t requests = 0;
  std::uint64_t stranger = favourites;
  const auto ask = [&](std::uint64_t key) {
    cache.serve({key, 1, 1000});
    ++requests;
  };
  for (int round = 0; round < rounds; ++round) {
    for (int pass = 0; pass < 3; ++pass) {
      for (std::uint64_t key = 0; key < favourites; ++key) ask(key);
    }
    for (std::uint64_t i = 0; i < pool; ++i) ask(++stranger);
  }
  return 100 * static_cast<double>(cache.result().hits) / static_cast<double>(requests);
}

void scan(Harness& harness) {
  if (!harness.json()) std::printf("hits under scans of a pool's size each, in %% of requests\n");
  const double lru = hit_ratio_under_scans("lru");
  for (const std::string_view policy : {"gdsf", "s3fifo"}) {
    harness.record({"hits_under_scans_" + std::string(policy), "%", "lru"},
                   hit_ratio_under_scans(policy), lru);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Harness harness(argc, argv, {"--trace", "--requests", "--seed"});
  try {
    const std::string path = harness.option("--trace", "");
    const std::uint64_t seed = std::stoull(harness.option("--seed", "1"));
    const std::size_t requests = std::stoull(harness.option("--requests", "300000"));
    if (path.empty()) {
      replay(harness, "sessions", simulation::TraceMaker(seed).make_sessions(requests));
      replay(harness, "independent", simulation::TraceMaker(seed).make_independent(requests));
    } else {
      const simulation::MediaModel model(seed, simulation::MediaModel::Mix::all);
      replay(harness, "file", simulation::read_trace_file(path, model));
    }
    scan(harness);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_eviction: %s\n", error.what());
    return 2;
  }
  return harness.finish();
}
