// A hit is a pin, and answers like the miss did (field cases B33, B34, B35).
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
  EXPECT_EQ(serve_one(second, a).source, Source::local);
}

}  // namespace
}  // namespace vitrove::testing
