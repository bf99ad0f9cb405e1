// What a controller tells of what it holds and what it spared.
#include "support.h"

namespace vitrove::testing {
namespace {

const ModelEntries* line_of(const PoolReport& report, Modality modality, const std::string& model) {
  for (const ModelEntries& line : report.models) {
    if (line.modality == modality && line.model == sha256(model)) return &line;
  }
  return nullptr;
}

ModelLookups lookups_of(const EmbeddingCacheController& controller, const std::string& model) {
  for (const ModelLookups& line : controller.model_lookups()) {
    if (line.model == sha256(model)) return line;
  }
  return {};
}

TEST(Introspection, EntriesAreToldByModalityAndModel) {
  EmbeddingCacheController controller(small_pool(100));
  serve_one(controller, picture(1, exactly_in_pages(3)));
  serve_one(controller, picture(2, 1));
  Picture other = picture(3);
  other.model = "other";
  serve_one(controller, other);
  Picture sound = picture(4);
  sound.modality = Modality::audio;
  serve_one(controller, sound);

  const PoolReport report = controller.inspect(10);
  ASSERT_EQ(report.models.size(), 3u);
  const ModelEntries* line = line_of(report, Modality::image, "model");
  ASSERT_NE(line, nullptr);
  EXPECT_EQ(line->entries, 2u);
  EXPECT_EQ(line->runs, 2u);
  EXPECT_EQ(line->bytes, 4 * page);
  EXPECT_EQ(line->payload_bytes, 3 * page + dim * 4);
  EXPECT_LE(line->mean_age, line->oldest_age);
  ASSERT_NE(line_of(report, Modality::image, "other"), nullptr);
  EXPECT_EQ(line_of(report, Modality::audio, "model")->entries, 1u);
  EXPECT_TRUE(report.most_valued.empty()) << "nothing was hit";
}

TEST(Introspection, AnEntryInSeveralRunsCountsThem) {
  EmbeddingCacheController controller(small_pool(4));
  for (int i = 0; i < 4; ++i) serve_one(controller, picture(i));
  controller.remove(picture(0).key(), std::nullopt, request());
  controller.remove(picture(2).key(), std::nullopt, request());
  const auto pins = serve(controller, {picture(1), picture(3)});  // nobody else can make room
  serve_one(controller, picture(5, exactly_in_pages(2)));
  EXPECT_EQ(line_of(controller.inspect(0), Modality::image, "model")->runs, 4u);
}

TEST(Introspection, WhatSavesMostComesFirst) {
  EmbeddingCacheController controller(small_pool(200));
  for (int i = 0; i < 150; ++i) {
    auto ticket = lead(controller, picture(i));
    publish(ticket, picture(i), 1000us * (i + 1));
  }
  for (int i = 0; i < 150; ++i) controller.try_get(picture(i).key());
  for (int i = 0; i < 1000; ++i) controller.try_get(picture(7).key());
  const auto best = controller.inspect(3).most_valued;
  ASSERT_EQ(best.size(), 3u);
  EXPECT_EQ(best[0].key, picture(7).key());
  EXPECT_EQ(best[0].hits, 1001u);
  EXPECT_EQ(best[0].saved_us, 1001u * 8000u);
  EXPECT_EQ(best[0].model, sha256("model"));
  EXPECT_EQ(best[1].key, picture(149).key());
  EXPECT_EQ(best[2].key, picture(148).key());
  EXPECT_EQ(best[2].saved_us, 149'000u);
}

TEST(Introspection, APeekIsNoHit) {
  EmbeddingCacheController controller(small_pool(10));
  serve_one(controller, picture(1));
  controller.peek(picture(1).key());
  EXPECT_TRUE(controller.inspect(10).most_valued.empty());
  controller.count_hit(controller.peek(picture(1).key()));
  EXPECT_EQ(controller.inspect(10).most_valued.size(), 1u);
}

TEST(Introspection, AnEntryThatComesBackStartsAnew) {
  EmbeddingCacheController controller(small_pool(10));
  serve_one(controller, picture(1));
  serve_one(controller, picture(1));
  controller.flush(FlushScope::local, std::nullopt, request());
  EXPECT_TRUE(controller.inspect(10).models.empty());
  serve_one(controller, picture(1));
  EXPECT_TRUE(controller.inspect(10).most_valued.empty());
}

TEST(Introspection, LookupsAreKeptByModel) {
  EmbeddingCacheController controller(small_pool(10));
  Picture other = picture(1);
  other.model = "other";
  for (int i = 0; i < 3; ++i) serve_one(controller, picture(1));
  serve_one(controller, other);
  const ModelLookups mine = lookups_of(controller, "model");
  EXPECT_EQ(mine.modality, Modality::image);
  EXPECT_EQ(mine.lookups.local, 2u);
  EXPECT_EQ(mine.lookups.miss, 1u);
  EXPECT_EQ(mine.saved_us, 2000u);
  EXPECT_EQ(lookups_of(controller, "other").lookups.miss, 1u);
  EXPECT_EQ(lookups_of(controller, "other").lookups.local, 0u);
}

// A server that is given new weights every hour must not grow.
TEST(Introspection, ModelsBeyondTheRoomForThemAreCountedTogether) {
  EmbeddingCacheController controller(small_pool(200));
  constexpr int models = 40;
  for (int i = 0; i < models; ++i) {
    Picture item = picture(1);
    item.model = "model " + std::to_string(i);
    for (int turn = 0; turn < 3; ++turn) serve_one(controller, item);
  }
  const auto lines = controller.model_lookups();
  EXPECT_EQ(lines.size(), LookupGroups::most);
  std::uint64_t local = 0;
  std::uint64_t miss = 0;
  std::uint64_t together = 0;
  for (const ModelLookups& line : lines) {
    local += line.lookups.local;
    miss += line.lookups.miss;
    if (!line.model) together += line.lookups.local;
  }
  EXPECT_EQ(local, 2u * models);
  EXPECT_EQ(miss, models);
  EXPECT_EQ(together, 2u * (models - (LookupGroups::most - LookupGroups::first_named)));
  EXPECT_EQ(lookups(controller).local, 2u * models);
  EXPECT_EQ(lookups(controller).miss, models);
  EXPECT_EQ(controller.inspect(0).models.size(), models) << "what is held is told of all";
}

TEST(Introspection, LooksWhileEverythingMoves) {
  EmbeddingCacheController controller(small_pool(50));
  std::atomic<bool> done = false;
  std::jthread watcher([&] {
    while (!done) {
      const PoolReport report = controller.inspect(5);
      for (const ModelEntries& line : report.models) {
        EXPECT_LE(line.payload_bytes, line.bytes);
        EXPECT_LE(line.bytes, 50 * page);
      }
      EXPECT_LE(report.most_valued.size(), 5u);
      std::this_thread::sleep_for(1ms);
    }
  });
  std::vector<std::jthread> clients;
  for (unsigned client = 0; client < 2; ++client) {
    clients.emplace_back([&, client] {
      std::mt19937 random(client);
      for (int i = 0; i < rounds(3000); ++i) {
        serve_one(controller, picture(static_cast<int>(random() % 100)));
      }
    });
  }
  clients.clear();
  done = true;
  watcher.join();
  controller.check_invariants();
}

}  // namespace
}  // namespace vitrove::testing
