// Counters that do not mislead (field case B74).
#include "support.h"

namespace vitrove::testing {
namespace {

TEST(Counting, OneCountAnItemAndTheySumUp) {
  const auto store = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller(small_pool(256), {store});
  // 100 queries: 37 local, 20 remote, 43 misses, of which 5 after a fault of the store.
  for (int i = 0; i < 37; ++i) serve_one(controller, picture(i));
  const LookupStats start = lookups(controller);
  EXPECT_EQ(start.miss, 37U);
  for (int i = 100; i < 125; ++i) plant(store->inner(), picture(i));
  for (int i = 120; i < 125; ++i) store->add({.op = StoreOp::get, .key = picture(i).key()});
  for (int i = 0; i < 37; ++i) serve_one(controller, picture(i));
  for (int i = 100; i < 125; ++i) serve_one(controller, picture(i));
  for (int i = 200; i < 238; ++i) serve_one(controller, picture(i));
  const LookupStats end = lookups(controller);
  EXPECT_EQ(end.local - start.local, 37U);
  EXPECT_EQ(end.store - start.store, 20U);
  EXPECT_EQ(end.miss - start.miss, 43U);
  EXPECT_EQ(end.joined, 0U);
  EXPECT_EQ(controller.stats().stores[0].get.faults, 5U);
}

TEST(Counting, IsByModality) {
  EmbeddingCacheController controller(small_pool(64));
  Picture clip = picture(1);
  clip.modality = Modality::video;
  Picture sound = picture(2);
  sound.modality = Modality::audio;
  serve(controller, {clip, sound, clip, picture(3)});
  serve_one(controller, sound);
  const LookupStats video = lookups(controller, Modality::video);
  EXPECT_EQ(video.miss, 1U);
  EXPECT_EQ(video.joined, 1U);
  EXPECT_EQ(lookups(controller, Modality::audio).miss, 1U);
  EXPECT_EQ(lookups(controller, Modality::audio).local, 1U);
  EXPECT_EQ(lookups(controller, Modality::image).miss, 1U);
}

TEST(Counting, EncodeTimeIsSavedByEveryKindOfHit) {
  const auto store = std::make_shared<FaultyStore>(make_memory_store());
  ASSERT_TRUE(put_one(*store, picture(1).key(), stored_value(picture(1), 5000us)).ok());
  EmbeddingCacheController controller(small_pool(64), {store});
  serve_one(controller, picture(1));
  EXPECT_EQ(controller.stats().saved_us, 5000U);  // store
  serve_one(controller, picture(1));
  EXPECT_EQ(controller.stats().saved_us, 10'000U);  // local
  controller.try_get(picture(1).key());
  EXPECT_EQ(controller.stats().saved_us, 15'000U);
  EXPECT_FALSE(controller.try_get(picture(2).key()));
  serve(controller, {picture(3), picture(3)});  // 1000 us, joined once
  EXPECT_EQ(controller.stats().saved_us, 16'000U);
}

TEST(Counting, HitsOfARequestCountForTheirModalities) {
  EmbeddingCacheController controller(small_pool(64));
  Picture clip = picture(1);
  clip.modality = Modality::video;
  const std::vector<Picture> items{picture(2), clip, picture(3), picture(4), clip};
  serve(controller, items);
  const std::uint64_t saved = controller.stats().saved_us;  // the joined clip
  for (const Served& again : serve(controller, items)) EXPECT_EQ(again.source, Source::local);
  EXPECT_EQ(lookups(controller, Modality::video).local, 2U);
  EXPECT_EQ(lookups(controller, Modality::image).local, 3U);
  EXPECT_EQ(controller.stats().saved_us - saved, 5000U);
  std::vector<EmbeddingKey> keys;
  for (const Picture& item : items) keys.push_back(item.key());
  keys.push_back(picture(5).key());
  std::vector<EmbeddingView> views(keys.size());
  controller.try_get(keys, views);
  EXPECT_EQ(lookups(controller, Modality::video).local, 4U);
  EXPECT_EQ(lookups(controller, Modality::image).local, 6U);
  EXPECT_EQ(lookups(controller, Modality::image).miss, 3U);  // of the first request
  EXPECT_EQ(controller.stats().saved_us - saved, 10'000U);
}

TEST(Counting, APeekCountsWhenItIsSaidToHaveBeenUsed) {
  EmbeddingCacheController controller(small_pool(64));
  serve_one(controller, picture(1));  // 1000 us
  const EmbeddingView view = controller.peek(picture(1).key());
  ASSERT_TRUE(view);
  EXPECT_EQ(lookups(controller).local, 0U);
  EXPECT_EQ(controller.stats().saved_us, 0U);
  controller.count_hit(view);
  EXPECT_EQ(lookups(controller).local, 1U);
  EXPECT_EQ(controller.stats().saved_us, 1000U);
  EXPECT_FALSE(controller.peek(picture(2).key()));
}

TEST(Counting, TicketsThatComeToNothingAreCountedOnceToo) {
  EmbeddingCacheController controller(small_pool(64));
  {
    auto ticket = lead(controller, picture(1));
    auto join = acquire_one(controller, picture(1));
  }
  EXPECT_EQ(lookups(controller).miss, 1U);
  EXPECT_EQ(lookups(controller).joined, 1U);
  {
    auto ticket = lead(controller, picture(1));
    ticket.fail(Error(ErrorCode::invalid_argument, "no"));
  }
  {
    auto ticket = lead(controller, picture(1));
    FillTicket moved = std::move(ticket);
  }
  EXPECT_EQ(lookups(controller).miss, 3U);
}

TEST(Counting, SumsHoldUnderConcurrency) {
  const auto store = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller(small_pool(24), {store});
  constexpr int threads = 6;
  constexpr int requests = rounds(200);
  std::atomic<std::uint64_t> items = 0;
  std::vector<std::jthread> clients;
  for (int t = 0; t < threads; ++t) {
    clients.emplace_back([&, t] {
      std::minstd_rand random(static_cast<unsigned>(t) + 74);
      for (int i = 0; i < requests; ++i) {
        std::vector<Picture> wanted;
        for (std::size_t n = 1 + random() % 4; n > 0; --n) {
          wanted.push_back(picture(static_cast<int>(random() % 40)));
        }
        items += wanted.size();
        serve(controller, wanted);
      }
    });
  }
  clients.clear();
  const LookupStats counts = lookups(controller);
  EXPECT_EQ(counts.local + counts.joined + counts.store + counts.miss, items);
  settle(controller);
  controller.check_invariants();
}

TEST(Counting, GaugesTellWhereTheBytesAre) {
  EmbeddingCacheController controller(small_pool(8));
  const auto empty = controller.stats();
  EXPECT_EQ(empty.pool_bytes, 8 * page);
  EXPECT_EQ(empty.bytes_free, 8 * page);
  EXPECT_EQ(empty.bytes_used + empty.bytes_pinned + empty.payload_bytes, 0U);

  const Picture a = picture(1, in_pages(3));
  EmbeddingView view = serve_one(controller, a).view;
  auto ticket = lead(controller, picture(2));
  const auto stats = controller.stats();
  EXPECT_EQ(stats.entries_ready, 1U);
  EXPECT_EQ(stats.entries_filling, 1U);
  EXPECT_EQ(stats.bytes_used, 3 * page);
  EXPECT_EQ(stats.bytes_pinned, 3 * page);
  EXPECT_EQ(stats.bytes_free, 5 * page);
  EXPECT_EQ(stats.payload_bytes, golden_bytes(a).size());
  view.release();
  EXPECT_EQ(controller.stats().bytes_pinned, 0U);

  // A pinned reader of a removed entry still holds its pages.
  view = serve_one(controller, a).view;
  controller.remove(a.key(), std::nullopt, request());
  EXPECT_EQ(controller.stats().entries_ready, 0U);
  EXPECT_EQ(controller.stats().bytes_used, 3 * page);
  EXPECT_EQ(controller.stats().bytes_pinned, 3 * page);
  view.release();
  EXPECT_EQ(controller.stats().bytes_used, 0U);
  EXPECT_EQ(controller.stats().payload_bytes, 0U);
}

TEST(Counting, SourcesAreSpelledAsTheApiSpellsThem) {
  EXPECT_EQ(to_string(Source::local), "local");
  EXPECT_EQ(to_string(Source::joined), "joined");
  EXPECT_EQ(to_string(Source::store), "store");
  EXPECT_EQ(to_string(Source::encoded), "encoded");
}

TEST(Counting, HealthNamesEveryTierAndItsState) {
  const auto store = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller(small_pool(8), {store, store});
  const auto health = controller.store_health();
  ASSERT_EQ(health.size(), 2U);
  EXPECT_EQ(health[1].name, "faulty#1");
  EXPECT_EQ(health[0].health.state, StoreState::ready);
}

}  // namespace
}  // namespace vitrove::testing
