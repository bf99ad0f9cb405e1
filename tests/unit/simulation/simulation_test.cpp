// Replaying traces: what is read, what is made up, what is counted, and that the bounds are bounds.
#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "simulation/media_model.h"
#include "simulation/offline_bounds.h"
#include "simulation/replay.h"
#include "simulation/trace_maker.h"
#include "simulation/trace_reader.h"
#include "vitrove/error.h"

namespace vitrove::simulation {
namespace {

const MediaModel model(1, MediaModel::Mix::all);

Trace read(const std::string& text) {
  std::istringstream lines(text);
  return read_trace(lines, model);
}

std::vector<std::uint64_t> keys_of(const Trace& trace) {
  std::vector<std::uint64_t> keys;
  for (const TraceRequest& request : trace) keys.push_back(request.key);
  return keys;
}

TEST(TraceReader, TakesLinesByTheirTimeAndIdsInTheirOrder) {
  const Trace trace = read(
      R"({"timestamp": 20, "hash_ids": [7, 8], "input_length": 5}
{"timestamp": 10.5, "hash_ids": [1]}

{"timestamp": 20, "hash_ids": [9]})");
  EXPECT_EQ(keys_of(trace), (std::vector<std::uint64_t>{1, 7, 8, 9}));
}

TEST(TraceReader, NamesTheLineThatItCannotRead) {
  const std::string good = R"({"timestamp": 1, "hash_ids": [1]})"
                           "\n";
  for (const std::string bad :
       {"x", "[]", "{}", R"({"timestamp": "1", "hash_ids": [1]})", R"({"hash_ids": [1]})",
        R"({"timestamp": 1, "hash_ids": 1})", R"({"timestamp": 1, "hash_ids": ["a"]})"}) {
    try {
      read(good + bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("line 2"), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(read(""), Error);
  EXPECT_THROW(read_trace_file("/nowhere/trace.jsonl", model), Error);
}

TEST(MediaModel, GivesAnItemAlwaysTheSameSizeAndCost) {
  const MediaModel again(1, MediaModel::Mix::all);
  const MediaModel other(2, MediaModel::Mix::all);
  int differs = 0;
  for (std::uint64_t key = 0; key < 1000; ++key) {
    EXPECT_EQ(model.item(key).bytes, again.item(key).bytes);
    EXPECT_EQ(model.item(key).cost_us, again.item(key).cost_us);
    differs += model.item(key).bytes != other.item(key).bytes ? 1 : 0;
  }
  EXPECT_GT(differs, 900);
}

TEST(MediaModel, StaysInItsRangesAndMixes) {
  std::array<int, 4> kinds{};
  for (std::uint64_t key = 0; key < 10000; ++key) {
    const TraceRequest item = model.item(key);
    ++kinds[static_cast<std::size_t>(item.modality)];
    const bool is_sound = item.modality == Modality::audio;
    const std::uint64_t tokens = item.bytes / (is_sound ? 2560 : 4096);
    EXPECT_GE(tokens, is_sound ? 50u : 64u);
    EXPECT_LE(tokens, 16384u);
    EXPECT_GT(item.cost_us, 3000u);
  }
  EXPECT_NEAR(kinds[1], 8500, 300);
  EXPECT_NEAR(kinds[2], 500, 150);
  EXPECT_NEAR(kinds[3], 1000, 200);
  const MediaModel pictures(1, MediaModel::Mix::pictures);
  for (std::uint64_t key = 0; key < 100; ++key) {
    EXPECT_EQ(pictures.item(key).modality, Modality::image);
  }
}

TEST(Replay, CountsHitsBytesAndCosts) {
  const Trace trace = {{1, 10, 100}, {2, 20, 50}, {1, 10, 100},
                       {2, 20, 50},  {3, 15, 5},  {1, 10, 100}};
  const ReplayResult result = replay(trace, "lru", 30);
  EXPECT_EQ(result.hits, 2u);  // the third medium puts out the first
  EXPECT_EQ(result.hit_bytes, 30u);
  EXPECT_EQ(result.saved_us, 150);
  EXPECT_EQ(replay(trace, "lru", 1000).hits, 3u);
  EXPECT_EQ(replay(trace, "lru", 0).hits, 0u);
  const TraceTotals totals = totals_of(trace);
  EXPECT_EQ(totals.media, 3u);
  EXPECT_EQ(totals.media_bytes, 45u);
  EXPECT_EQ(totals.request_bytes, 85u);
  EXPECT_EQ(totals.cost_us, 405);
}

TEST(Replay, KeepsToSharesAndNeverOverfills) {
  const std::vector<ModalityShare> shares = {{Modality::audio, 0.5, 1}};
  SimulatedCache cache("lru", 100, shares);
  for (std::uint64_t key = 0; key < 5; ++key) cache.serve({key, 10, 1, Modality::audio});
  for (std::uint64_t key = 100; key < 200; ++key) cache.serve({key, 10, 1, Modality::image});
  for (std::uint64_t key = 0; key < 5; ++key) {
    EXPECT_TRUE(cache.serve({key, 10, 1, Modality::audio}));
  }
  EXPECT_FALSE(cache.serve({300, 101, 1, Modality::image}));
  EXPECT_EQ(cache.result().evictions, 95u);
  EXPECT_FALSE(cache.serve({301, 60, 1, Modality::video}));  // the audio stays: nobody goes in vain
  EXPECT_EQ(cache.result().evictions, 95u);
}

// The best there is on short traces, found by trying everything.
double best_by_trying(const Trace& trace, std::size_t at, std::set<std::uint64_t> held,
                      std::uint64_t pool) {
  if (at == trace.size()) return 0;
  std::uint64_t used = 0;
  for (const std::uint64_t key : held) {
    used += std::ranges::find(trace, key, &TraceRequest::key)->bytes;
  }
  if (used > pool) return -1e18;
  const TraceRequest& request = trace[at];
  const bool hit = held.contains(request.key);
  const double saved = hit ? static_cast<double>(request.cost_us) : 0;
  double best = -1e18;
  std::vector<std::uint64_t> choices(held.begin(), held.end());
  if (!hit) choices.push_back(request.key);
  for (std::size_t mask = 0; mask < (std::size_t{1} << choices.size()); ++mask) {
    std::set<std::uint64_t> kept;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if ((mask >> i & 1) != 0) kept.insert(choices[i]);
    }
    best = std::max(best, best_by_trying(trace, at + 1, kept, pool));
  }
  return saved + best;
}

TEST(OfflineBounds, EncloseTheBestThereIs) {
  std::mt19937 random(83);
  for (int game = 0; game < 40; ++game) {
    std::array<TraceRequest, 4> media;
    for (std::uint64_t key = 0; key < media.size(); ++key) {
      media[key] = {key, 1 + random() % 10, 1 + random() % 100};
    }
    Trace trace;
    for (int i = 0; i < 7; ++i) trace.push_back(media[random() % media.size()]);
    const std::uint64_t pool = 4 + random() % 16;
    const OfflineBounds bounds = offline_bounds(trace, pool);
    const double best = best_by_trying(trace, 0, {}, pool);
    EXPECT_LE(bounds.least_us, best + 1e-6);
    EXPECT_GE(bounds.most_us, best - 1e-6);
  }
}

TEST(OfflineBounds, NoPolicyPassesThem) {
  const Trace trace = TraceMaker(5).make_sessions(5000);
  const std::uint64_t all = totals_of(trace).media_bytes;
  for (const std::uint64_t pool : {all / 100, all / 20, all / 5}) {
    const OfflineBounds bounds = offline_bounds(trace, pool);
    EXPECT_LE(bounds.least_us, bounds.most_us);
    for (const auto policy : eviction_policies()) {
      EXPECT_LE(replay(trace, policy, pool).saved_us, bounds.most_us) << policy;
    }
  }
}

// What is asked for again and again, and scans that fill the pool with what nobody asks for twice.
std::uint64_t hits_under_scans(std::string_view policy, std::uint64_t cost_of_strangers) {
  SimulatedCache cache(policy, 200);
  std::uint64_t stranger = 1000;
  for (int round = 0; round < 50; ++round) {
    for (int pass = 0; pass < 3; ++pass) {
      for (std::uint64_t key = 0; key < 100; ++key) cache.serve({key, 1, 1000});
    }
    for (int i = 0; i < 200; ++i) cache.serve({++stranger, 1, cost_of_strangers});
  }
  return cache.result().hits;
}
constexpr std::uint64_t most_hits = 50 * 300 - 100;

TEST(ScanResistance, S3FifoKeepsWhatLruLosesToScans) {
  EXPECT_EQ(hits_under_scans("lru", 1000), 50u * 200) << "each scan costs it all";
  EXPECT_GT(hits_under_scans("s3fifo", 1000), most_hits * 95 / 100);
}

// To GDSF a burst of hits is one use, so a stranger that is worth as much looks as good.
TEST(ScanResistance, GdsfKeepsItFromScansOfWhatIsWorthLess) {
  EXPECT_EQ(hits_under_scans("lru", 250), 50u * 200);
  EXPECT_GT(hits_under_scans("gdsf", 250), most_hits * 95 / 100);
}

}  // namespace
}  // namespace vitrove::simulation
