// Shares of the pool for modalities, through the whole controller.
#include "support.h"

namespace vitrove::testing {
namespace {

Picture item_of(Modality modality, int number, std::uint32_t rows = in_pages(1)) {
  Picture item = picture(number, rows);
  item.name = std::string(to_string(modality)) + item.name;
  item.modality = modality;
  return item;
}

std::uint64_t pages_of(EmbeddingCacheController& controller, Modality modality) {
  std::uint64_t bytes = 0;
  for (const ModelEntries& line : controller.inspect(0).models) {
    if (line.modality == modality) bytes += line.bytes;
  }
  return bytes / page;
}

class Shares : public ::testing::TestWithParam<std::string_view> {
 protected:
  ControllerOptions options(std::vector<ModalityShare> shares, std::uint64_t pages = 100) {
    ControllerOptions options = small_pool(pages);
    options.eviction_policy = GetParam();
    options.modality_shares = std::move(shares);
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(Policies, Shares, ::testing::ValuesIn(eviction_policies()),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(Shares, WhatAModalityIsPromisedNobodyTakes) {
  EmbeddingCacheController controller(options({{Modality::audio, 0.2, 1}}));
  for (int i = 0; i < 40; ++i) serve_one(controller, item_of(Modality::audio, i));
  for (int i = 0; i < 500; ++i) serve_one(controller, item_of(Modality::image, i));
  EXPECT_EQ(pages_of(controller, Modality::audio), 20u);
  EXPECT_EQ(pages_of(controller, Modality::image), 80u);
  // Its own entries make room for it all the same.
  for (int i = 100; i < 120; ++i) serve_one(controller, item_of(Modality::audio, i));
  EXPECT_GE(pages_of(controller, Modality::audio), 20u);
  controller.check_invariants();
}

TEST_P(Shares, AtItsMostAModalityEvictsItsOwn) {
  EmbeddingCacheController controller(options({{Modality::video, 0, 0.3}}));
  for (int i = 0; i < 70; ++i) serve_one(controller, item_of(Modality::image, i));
  for (int i = 0; i < 200; ++i) serve_one(controller, item_of(Modality::video, i));
  EXPECT_EQ(pages_of(controller, Modality::image), 70u);
  EXPECT_EQ(pages_of(controller, Modality::video), 30u);
  controller.check_invariants();
}

TEST_P(Shares, FreePagesAreAnybodys) {
  EmbeddingCacheController controller(options({{Modality::video, 0, 0.3}}));
  for (int i = 0; i < 100; ++i) serve_one(controller, item_of(Modality::video, i));
  EXPECT_EQ(pages_of(controller, Modality::video), 100u);
  // Who is above his most gives first.
  for (int i = 0; i < 50; ++i) serve_one(controller, item_of(Modality::image, i));
  EXPECT_EQ(pages_of(controller, Modality::image), 50u);
  EXPECT_EQ(pages_of(controller, Modality::video), 50u);
}

// An item for which nobody may go is returned uncached, and nobody goes in vain.
TEST_P(Shares, WhoFindsNoRoomIsServedUncached) {
  EmbeddingCacheController controller(
      options({{Modality::image, 0.5, 1}, {Modality::audio, 0.5, 1}}));
  for (int i = 0; i < 50; ++i) serve_one(controller, item_of(Modality::image, i));
  for (int i = 0; i < 50; ++i) serve_one(controller, item_of(Modality::audio, i));
  const Picture video = item_of(Modality::video, 1);
  const auto served = serve_one(controller, video);
  expect_golden(served.view, video);
  EXPECT_FALSE(served.view.pooled());
  EXPECT_EQ(controller.stats().evictions_space, 0u);
  EXPECT_EQ(controller.stats().uncached_no_space, 1u);
}

// One page above its least is one page that may go, and not all that the modality has.
TEST_P(Shares, NobodyGoesForWhatDoesNotFitBesideTheLeastOfOthers) {
  EmbeddingCacheController controller(options({{Modality::audio, 0.3, 1}}));
  for (int i = 0; i < 31; ++i) serve_one(controller, item_of(Modality::audio, i));
  for (int i = 0; i < 69; ++i) serve_one(controller, item_of(Modality::image, i));
  const Picture video = item_of(Modality::video, 1, in_pages(75));
  EXPECT_FALSE(serve_one(controller, video).view.pooled());
  EXPECT_EQ(controller.stats().evictions_space, 0u);
  {
    // Nor for what would fit if nobody were in use.
    const EmbeddingView used = serve_one(controller, item_of(Modality::image, 1)).view;
    EXPECT_FALSE(serve_one(controller, item_of(Modality::video, 2, in_pages(70))).view.pooled());
    EXPECT_EQ(controller.stats().evictions_space, 0u);
    EXPECT_TRUE(serve_one(controller, item_of(Modality::video, 3, in_pages(65))).view.pooled());
  }
  EXPECT_GE(pages_of(controller, Modality::audio), 30u);
  controller.check_invariants();
}

// A row longer than a page needs neighbours. The audio lies in front, and 5 pages of it may go.
TEST_P(Shares, NobodyGoesForAWindowThatTheSharesDoNotLetOpen) {
  EmbeddingCacheController controller(options({{Modality::audio, 0.3, 1}}));
  for (int i = 0; i < 35; ++i) serve_one(controller, item_of(Modality::audio, i));
  for (int i = 0; i < 65; ++i) serve_one(controller, item_of(Modality::image, i));
  auto& core = *ControllerAccess::impl(controller).core;
  const auto allocate = [&](std::uint64_t pages) {
    return core.allocate(pages * page, pages * page, Modality::video);
  };
  EXPECT_FALSE(allocate(71));
  EXPECT_EQ(controller.stats().evictions_space, 0u);
  // There is a window without audio: the first that there is would take 5 pages of it in vain.
  auto runs = allocate(64);
  ASSERT_TRUE(runs);
  EXPECT_EQ(pages_of(controller, Modality::audio), 35u);
  core.pool().release(*runs);
}

// Entries of many sizes, evicted by place as well as in order.
TEST_P(Shares, ALargeItemLeavesTheOthersTheirLeast) {
  EmbeddingCacheController controller(options({{Modality::audio, 0.3, 1}}));
  std::mt19937 random(79);
  for (int i = 0; i < 300; ++i) {
    const auto modality = static_cast<Modality>(1 + random() % 3);
    const bool large = modality == Modality::video && random() % 4 == 0;
    const std::uint64_t before = pages_of(controller, Modality::audio);
    const auto pages = static_cast<std::uint32_t>(large ? 20 + random() % 30 : 1 + random() % 5);
    serve_one(controller, item_of(modality, i, in_pages(pages)));
    if (modality == Modality::audio) continue;
    // Above its least one entry, of five pages at most, may go over the edge; below it none goes.
    const std::uint64_t least = before > 30 ? 26 : before;
    EXPECT_GE(pages_of(controller, Modality::audio), least);
  }
  controller.check_invariants();
}

TEST_P(Shares, HoldUnderAStormOfAllModalities) {
  EmbeddingCacheController controller(options(
      {{Modality::image, 0.1, 0.5}, {Modality::video, 0.2, 0.4}, {Modality::audio, 0.1, 0.9}}));
  std::vector<std::jthread> clients;
  for (unsigned client = 0; client < 4; ++client) {
    clients.emplace_back([&, client] {
      std::mt19937 random(client);
      for (int i = 0; i < rounds(1000); ++i) {
        const auto modality = static_cast<Modality>(1 + random() % 3);
        const int number = static_cast<int>(random() % 60);
        const Picture item = item_of(modality, number, 1 + static_cast<std::uint32_t>(number));
        expect_golden(serve_one(controller, item).view, item);
      }
    });
  }
  clients.clear();
  controller.check_invariants();
}

TEST(SharesOfOptions, ThatMakeNoSenseAreRefused) {
  ControllerOptions options = small_pool(10);
  options.modality_shares = {{Modality::image, 0.7, 0.6}};
  EXPECT_THROW(EmbeddingCacheController{options}, Error);
}

}  // namespace
}  // namespace vitrove::testing
