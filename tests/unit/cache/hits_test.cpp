// A hit is a pin, and answers like the miss did (field cases B28, B29, B33, B34, B35, B68).
#include <map>
#include <random>

#include "support.h"

namespace vitrove::testing {
namespace {

TEST(Hits, WhatWasPublishedIsALocalHit) {
  EmbeddingCacheController controller(small_pool(8));
  const Picture a = picture(1);
  expect_golden(serve_one(controller, a).view, a);
  const Served again = serve_one(controller, a);
  EXPECT_EQ(again.source, Source::local);
  expect_golden(again.view, a);
  EXPECT_EQ(again.view.encode_cost(), 1000us);
  EXPECT_EQ(again.view.stored_key(), a.key());
  EXPECT_EQ(again.view.model_fingerprint(), sha256("model"));
  EXPECT_TRUE(again.view.pooled());
}

TEST(Hits, AStoredEmbeddingIsAStoreHitForAFreshInstance) {
  const auto store = std::make_shared<FaultyStore>(make_memory_store());
  const Picture a = picture(1);
  {
    EmbeddingCacheController first(small_pool(8), {store});
    serve_one(first, a);
    settle(first);
    first.check_invariants();
  }
  EmbeddingCacheController second(small_pool(8), {store});
  const Served served = serve_one(second, a);
  EXPECT_EQ(served.source, Source::store);
  expect_golden(served.view, a);
  EXPECT_EQ(served.view.encode_cost(), 1000us);
  EXPECT_EQ(serve_one(second, a).source, Source::local);
}

TEST(Hits, EveryRowBelongsToItsInputWhateverTheStateOfTheCache) {  // B29
  const auto store = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller(small_pool(48), {store});
  std::vector<Picture> pictures;
  for (int i = 0; i < 20; ++i)
    pictures.push_back(picture(i, 1 + static_cast<std::uint32_t>(i) * 5));
  std::minstd_rand random(29);
  for (int round = 0; round < 200; ++round) {
    // Anything may be in the pool, in the store only, or nowhere.
    const Picture& touched = pictures[random() % pictures.size()];
    switch (random() % 4) {
      case 0:
        controller.remove(touched.key(), std::nullopt, request());
        break;
      case 1:
        plant(store->inner(), touched);
        break;
      case 2:
        controller.flush(FlushScope::local, std::nullopt, request());
        break;
      default:
        serve_one(controller, touched);
        break;
    }
    std::vector<Picture> wanted;
    for (std::size_t i = 0, count = 1 + random() % 8; i < count; ++i) {
      wanted.push_back(pictures[random() % pictures.size()]);
    }
    const auto served = serve(controller, wanted);
    ASSERT_EQ(served.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) expect_golden(served[i].view, wanted[i]);
  }
  settle(controller);
  controller.check_invariants();
}

TEST(Hits, TheKeysOfARequestAreLookedUpTogether) {
  EmbeddingCacheController controller(small_pool(128));
  // More than are looked up at once; every third is missing, and one stands there twice.
  std::vector<Picture> pictures;
  std::vector<EmbeddingKey> keys;
  std::vector<bool> is_there;
  for (int i = 0; i < 40; ++i) {
    pictures.push_back(picture(i, 1 + static_cast<std::uint32_t>(i)));
    is_there.push_back(i % 3 != 0);
    if (is_there.back()) serve_one(controller, pictures.back());
  }
  is_there.push_back(true);
  pictures.push_back(pictures[7]);
  for (const Picture& item : pictures) keys.push_back(item.key());
  std::vector<EmbeddingView> views(keys.size());
  const auto check = [&] {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(static_cast<bool>(views[i]), is_there[i]) << i;
      if (is_there[i]) expect_golden(views[i], pictures[i]);
    }
  };
  const std::uint64_t before = lookups(controller).local;
  controller.try_get(keys, views);
  check();
  EXPECT_EQ(lookups(controller).local - before, 27U);
  EXPECT_EQ(controller.stats().bytes_pinned, controller.stats().bytes_used);

  // Views that hold something let go of it.
  serve_one(controller, pictures[0]);
  is_there[0] = true;
  std::ranges::reverse(views);
  controller.try_get(keys, views);
  check();
  views.clear();
  EXPECT_EQ(controller.stats().bytes_pinned, 0U);
  controller.try_get({}, {});
  EXPECT_THROW(controller.try_get(keys, views), Error);
  controller.check_invariants();
}

TEST(Hits, PeeksOfARequestAreAsThoseOfItsKeys) {
  EmbeddingCacheController controller(small_pool(128));
  std::vector<EmbeddingKey> keys;
  for (int i = 0; i < 40; ++i) {
    keys.push_back(picture(i).key());
    if (i % 3 != 0) serve_one(controller, picture(i));
  }
  keys.insert(keys.end(), {keys[7], keys[7], keys[0], keys[0]});
  const std::uint64_t before = lookups(controller).local;
  std::vector<EmbeddingView> views(keys.size());
  controller.peek(keys, views);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const EmbeddingView alone = controller.peek(keys[i]);
    ASSERT_EQ(static_cast<bool>(views[i]), static_cast<bool>(alone)) << i;
    if (!alone) continue;
    EXPECT_EQ(views[i].runs().front().data(), alone.runs().front().data()) << i;
  }
  EXPECT_EQ(lookups(controller).local, before) << "nothing is counted";
  EXPECT_TRUE(controller.inspect(10).most_valued.empty());
  EXPECT_EQ(controller.stats().bytes_pinned, controller.stats().bytes_used);
  controller.peek({}, {});
  EXPECT_THROW(controller.peek(keys, std::span(views).first(3)), Error);
  views.clear();
  EXPECT_EQ(controller.stats().bytes_pinned, 0U);
  controller.check_invariants();
}

TEST(Hits, TheKeysOfARequestAreLookedUpTogetherWhileOthersEvict) {
  auto options = small_pool(24);
  options.pool.poison_on_free = true;
  EmbeddingCacheController controller(options);
  constexpr int kinds = 40;
  std::vector<Picture> pictures;
  std::vector<EmbeddingKey> keys;
  for (int i = 0; i < kinds; ++i) {
    pictures.push_back(picture(i));
    keys.push_back(pictures.back().key());
  }
  std::jthread others([&](const std::stop_token& stop) {
    std::minstd_rand random(9);
    while (!stop.stop_requested()) serve_one(controller, pictures[random() % kinds]);
  });
  std::vector<EmbeddingView> views(kinds);
  std::uint64_t hits = 0;
  for (int round = 0; round < rounds(500) || hits == 0; ++round) {
    controller.try_get(keys, views);
    for (std::size_t i = 0; i < views.size(); ++i) {
      if (!views[i]) continue;
      ++hits;
      expect_golden(views[i], pictures[i]);
      views[i].release();
    }
  }
  others.request_stop();
  others.join();
  controller.check_invariants();
}

TEST(Hits, AViewStaysWholeWhileOthersFightForItsPages) {  // B33
  auto options = small_pool(8);
  options.pool.poison_on_free = true;
  EmbeddingCacheController controller(options);
  const Picture kept = picture(0, in_pages(3));
  const EmbeddingView view = serve_one(controller, kept).view;
  for (int i = 1; i <= 50; ++i) {
    const Picture other = picture(i, in_pages(2));
    expect_golden(serve_one(controller, other).view, other);
    expect_golden(view, kept);
  }
  EXPECT_GT(controller.stats().evictions_space, 40U);
}

TEST(Hits, AViewOutlivesItsEntry) {  // B33
  auto options = small_pool(8);
  options.pool.poison_on_free = true;
  EmbeddingCacheController controller(options);
  const Picture a = picture(1);
  EmbeddingView view = serve_one(controller, a).view;
  controller.remove(a.key(), std::nullopt, request());
  EXPECT_FALSE(is_cached(controller, a));
  EmbeddingView second = serve_one(controller, a).view;  // a new entry of the same key
  expect_golden(view, a);
  EXPECT_NE(view.runs()[0].data(), second.runs()[0].data());
  view.release();
  expect_golden(second, a);
  EXPECT_TRUE(is_cached(controller, a));
  second.release();
  controller.check_invariants();
}

TEST(Hits, TheSamePictureTwiceInARequestIsOneFillAndTwoPins) {  // B34
  EmbeddingCacheController controller(small_pool(2));
  const Picture a = picture(1);
  const Picture b = picture(2);
  std::atomic<int> encodes = 0;
  auto served = serve(controller, {a, b, a}, &encodes);
  EXPECT_EQ(encodes, 2);
  EXPECT_EQ(served[2].source, Source::joined);

  served[0].view.release();
  // Pressure from somebody else: the second use of A still pins it.
  serve_one(controller, picture(3));
  expect_golden(served[2].view, a);
  expect_golden(served[1].view, b);
  EXPECT_EQ(serve_one(controller, a).source, Source::local);
  served.clear();
  controller.check_invariants();
}

TEST(Hits, EntriesDoNotAliasTheEncodersBuffer) {  // B35
  const auto store = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller(small_pool(64), {store});
  std::vector<float> output(std::size_t{in_pages(1)} * dim);  // one buffer for all forwards
  for (int i = 0; i < 26; ++i) {
    const Picture item = picture(i);
    auto ticket = lead(controller, item);
    const auto golden = item.golden();
    // The device still copies when publish() is called; the completion ends it.
    const auto copied = [&] { output = golden; };
    std::ranges::fill(output, std::numeric_limits<float>::quiet_NaN());
    ticket.publish({bytes_of(output), item.rows, item.side(), 1ms}, copied);
  }
  std::ranges::fill(output, 0.0F);
  settle(controller);
  EmbeddingCacheController other(small_pool(64), {store});
  for (int i = 0; i < 26; ++i) {
    expect_golden(serve_one(controller, picture(i)).view, picture(i));
    const Served stored = serve_one(other, picture(i));
    EXPECT_EQ(stored.source, Source::store);
    expect_golden(stored.view, picture(i));
  }
}

TEST(Hits, AFailedCopyIsAFailedFill) {  // B35, B36
  EmbeddingCacheController controller(small_pool(8));
  const Picture a = picture(1);
  auto ticket = lead(controller, a);
  const auto golden = a.golden();
  const Completion broken = [] { throw Error(ErrorCode::internal, "device lost"); };
  EXPECT_THROW(ticket.publish({bytes_of(golden), a.rows, a.side(), 1ms}, broken), Error);
  EXPECT_FALSE(is_cached(controller, a));
  controller.check_invariants();
}

TEST(Hits, ADetachedViewKeepsItsRowsAndGivesThePinBack) {
  EmbeddingCacheController controller(small_pool(2));
  const Picture a = picture(1, in_pages(2));
  EmbeddingView view = serve_one(controller, a).view;
  EXPECT_GT(controller.stats().bytes_pinned, 0U);
  view.detach();
  EXPECT_EQ(controller.stats().bytes_pinned, 0U);
  EXPECT_FALSE(view.pooled());
  const Picture b = picture(2, in_pages(2));
  expect_golden(serve_one(controller, b).view, b);  // takes all the pages
  expect_golden(view, a);
  EXPECT_EQ(view.stored_key(), a.key());
  view.detach();  // again: nothing to do
  view.release();
  controller.check_invariants();
}

TEST(Hits, ReleaseAwaitsTheCompletionWithThePinHeld) {
  EmbeddingCacheController controller(small_pool(2));
  const Picture a = picture(1);
  EmbeddingView view = serve_one(controller, a).view;
  bool called = false;
  view.release([&] {
    called = true;
    EXPECT_GT(controller.stats().bytes_pinned, 0U);
  });
  EXPECT_TRUE(called);
  EXPECT_FALSE(view);
  EXPECT_EQ(controller.stats().bytes_pinned, 0U);

  EmbeddingView other = serve_one(controller, a).view;
  EXPECT_THROW(other.release([] { throw Error(ErrorCode::internal, "device lost"); }), Error);
  EXPECT_EQ(controller.stats().bytes_pinned, 0U);
  controller.check_invariants();
}

TEST(Hits, ViewsMoveWithTheirPin) {
  EmbeddingCacheController controller(small_pool(4));
  const Picture a = picture(1);
  EmbeddingView first = serve_one(controller, a).view;
  EmbeddingView second = std::move(first);
  EXPECT_FALSE(first);
  first = serve_one(controller, picture(2)).view;
  second = std::move(first);
  EXPECT_EQ(rows_of(second), golden_bytes(picture(2)));
  auto& same = second;
  second = std::move(same);
  EXPECT_TRUE(second);
  second.release();
  controller.check_invariants();
}

TEST(Hits, AnEntryOfManyRunsReadsBackRightThroughAStore) {  // B68
  const auto store = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller(small_pool(16), {store});
  // Tear the free pages: single pages kept between single free ones.
  std::map<int, EmbeddingView> kept;
  for (int i = 0; i < 16; ++i) kept[i] = serve_one(controller, picture(i)).view;
  for (int i = 0; i < 16; i += 2) {
    kept.erase(i);
    controller.remove(picture(i).key(), std::nullopt, request());
  }
  // 5 runs; rows_per_page rows each, and the side data behind the last, half-filled page.
  const Picture torn = picture(100, 4 * rows_per_page + 3);
  {
    const Served served = serve_one(controller, torn);
    ASSERT_TRUE(served.view.pooled());
    EXPECT_GT(served.view.runs().size(), 1U);
    expect_golden(served.view, torn);
  }
  settle(controller);
  // What stands in the store is the plain value, with no page's rest in it.
  auto stored = read_back(*store, torn.key());
  ASSERT_EQ(stored.size(), stored_value(torn).size());
  EXPECT_EQ(inspect(stored, torn.key()), Reject::none);

  controller.flush(FlushScope::local, std::nullopt, request());
  const Served again = serve_one(controller, torn);  // into torn pages
  EXPECT_EQ(again.source, Source::store);
  ASSERT_TRUE(again.view.pooled());
  EXPECT_GT(again.view.runs().size(), 1U);
  expect_golden(again.view, torn);
  for (const auto& run : again.view.runs()) EXPECT_EQ(run.size() % (dim * sizeof(float)), 0U);
}

TEST(Hits, SideDataLargerThanARowSurviveEveryPath) {  // B28
  const auto store = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller(small_pool(64), {store});
  const Picture clip = picture(1, 40);
  SideData side;
  side.grid = Grid{500, 1, 1};
  for (int i = 0; i < 500; ++i) side.timestamps.push_back(i * 0.5);
  side.seconds_per_grid = 0.5;
  const auto golden = clip.golden();
  lead(controller, clip).publish({bytes_of(golden), clip.rows, side, 1ms});
  settle(controller);
  for (int pass = 0; pass < 2; ++pass) {
    const Served served = serve_one(controller, clip);
    EXPECT_EQ(served.source, pass == 0 ? Source::local : Source::store);
    EXPECT_EQ(served.view.side_data(), side);
    EXPECT_EQ(served.view.rows(), clip.rows);
    EXPECT_EQ(rows_of(served.view), golden_bytes(clip));
    controller.flush(FlushScope::local, std::nullopt, request());
  }
}

// Wherever they come from, and the value in the store is complete all the same.
TEST(Hits, SideDataCostNoPage) {
  const auto near = std::make_shared<FaultyStore>(make_memory_store());
  const auto far = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller(small_pool(64), {near, far});
  const Picture exact = picture(1, exactly_in_pages(3));
  SideData many = exact.side();
  for (int i = 0; i < 100; ++i) many.timestamps.push_back(i * 0.5);  // more than a header slot
  const Picture clip = picture(2, exactly_in_pages(3));
  const auto golden = clip.golden();
  lead(controller, clip).publish({bytes_of(golden), clip.rows, many, 1ms});
  for (const Source source : {Source::encoded, Source::store, Source::local}) {
    const Served served = serve_one(controller, exact);
    EXPECT_EQ(served.source, source);
    expect_golden(served.view, exact);
    EXPECT_EQ(serve_one(controller, clip).view.side_data(), many);
    EXPECT_EQ(controller.stats().bytes_used, 6 * page);
    EXPECT_EQ(controller.stats().payload_bytes, 6 * page);
    settle(controller);
    if (source == Source::encoded) controller.flush(FlushScope::local, std::nullopt, request());
  }
  for (const Picture& item : {exact, clip}) {
    EXPECT_EQ(inspect(read_back(*near, item.key()), item.key()), Reject::none);
    EXPECT_EQ(read_back(*near, item.key()), read_back(*far, item.key()));
  }
  EXPECT_EQ(read_back(*near, exact.key()).size(), stored_value(exact).size());
  controller.check_invariants();
}

// A record that only a later version can parse is passed on as it is.
TEST(Hits, SideDataOfALaterVersionAreCopiedToTheNearerTier) {
  const auto far = std::make_shared<FaultyStore>(make_memory_store());
  const Picture a = picture(1);
  Bytes later(8, std::byte{0});
  later[0] = std::byte{7};
  later[1] = std::byte{0x80};  // may be skipped
  const Bytes value = stored_value(a, 1ms, later);
  ASSERT_TRUE(put_one(*far, a.key(), value).ok());
  for (const std::uint64_t pages : {8, 0}) {  // in pages, and through staging
    const auto near = std::make_shared<FaultyStore>(make_memory_store());
    EmbeddingCacheController controller(small_pool(pages), {near, far});
    const Served served = serve_one(controller, a);
    EXPECT_EQ(served.source, Source::store);
    expect_golden(served.view, a);
    settle(controller);
    EXPECT_EQ(read_back(*near, a.key()), value);
  }
}

TEST(Hits, AnEntryThatIsNotWhatTheRequestNeedsIsRecomputed) {  // B19
  const auto store = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller(small_pool(16), {store});
  const Picture a = picture(1, 10);
  serve_one(controller, a);
  settle(controller);
  Picture longer = a;  // the same key, as a broken key function would give
  longer.rows = 12;
  std::atomic<int> encodes = 0;
  const Served served = serve_one(controller, longer, &encodes);
  EXPECT_EQ(encodes, 1);
  EXPECT_EQ(served.view.rows(), 12U);
  EXPECT_EQ(rejected(controller, "shape") + rejected(controller, "size"), 2U);  // pool and store
  settle(controller);
  EXPECT_EQ(read_back(*store, longer.key()).size(), stored_value(longer).size());
}

}  // namespace
}  // namespace vitrove::testing
