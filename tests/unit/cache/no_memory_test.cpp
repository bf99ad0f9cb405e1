// Memory that runs out while an entry goes into the pool (field case B36): wherever it happens, no
// page is lost, nothing stays pinned or half published, and whoever waits gets an answer.
#include "support.h"
#include "support/allocation_faults.h"

namespace vitrove::testing {
namespace {

using test::AllocationFault;

class NoMemory : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr int entries = 8;

  // Full, with somebody in it who cannot go.
  struct Full {
    explicit Full(const std::string& policy) {
      ControllerOptions options = small_pool(entries);
      options.eviction_policy = policy;
      options.pool.poison_on_free = true;
      controller = std::make_unique<EmbeddingCacheController>(
          options, std::vector<std::shared_ptr<EmbeddingStore>>{store});
      for (int i = 0; i < entries; ++i) serve_one(*controller, picture(i));
      settle(*controller);
      pinned = controller->peek(picture(0).key());
    }
    std::shared_ptr<EmbeddingStore> store = make_memory_store();
    std::unique_ptr<EmbeddingCacheController> controller;
    EmbeddingView pinned;
  };

  // At rest, and as good as new: every page can be had.
  static void expect_whole(Full& full, int which) {
    SCOPED_TRACE("allocation " + std::to_string(which));
    full.pinned.release();
    settle(*full.controller);
    ASSERT_NO_THROW(full.controller->check_invariants());
    const ControllerStats stats = full.controller->stats();
    EXPECT_EQ(stats.bytes_pinned, 0U);
    EXPECT_EQ(stats.entries_filling, 0U);
    std::vector<EmbeddingView> all;
    for (int i = 0; i < entries; ++i) {
      all.push_back(serve_one(*full.controller, picture(200 + i)).view);
      EXPECT_TRUE(all.back().pooled()) << i;
    }
    settle(*full.controller);
    all.clear();
    full.controller->check_invariants();
  }

  // It evicts several, and may be torn into several runs.
  const Picture item_ = picture(100, in_pages(3));
};

INSTANTIATE_TEST_SUITE_P(Policies, NoMemory, ::testing::Values("lru", "s3fifo", "gdsf"),
                         [](const auto& test) { return test.param; });

// Fails the first allocation of a publication, then the second, and so on until none is left.
TEST_P(NoMemory, WhilePublishingIsTheLeadersErrorAndAFollowerTakesOver) {
  const auto rows = item_.golden();
  for (int which = 1;; ++which) {
    Full full(GetParam());
    auto ticket = lead(*full.controller, item_);
    ASSERT_FALSE(ticket.resolve_features(EmbeddingKey{sha256("features")}, request()));
    auto follower = acquire_one(*full.controller, item_);
    const EncodedRows encoded{bytes_of(rows), item_.rows, item_.side(), 1ms};
    bool happened = false;
    {
      const AllocationFault fault(which);
      try {
        ticket.publish(encoded);
      } catch (const std::bad_alloc&) {
      }
      happened = fault.happened();
    }
    {
      auto place = std::get<JoinTicket>(std::move(follower));
      auto outcome = place.wait(request());
      auto* const fill = std::get_if<FillTicket>(&outcome);
      const auto view =
          fill != nullptr ? publish(*fill, item_) : std::move(std::get<EmbeddingView>(outcome));
      expect_golden(view, item_);
    }
    expect_whole(full, which);
    if (HasFailure()) return;
    if (!happened) {
      EXPECT_GT(which, 10) << "the allocations were not counted";
      return;
    }
  }
}

// The same for what comes out of a store.
TEST_P(NoMemory, WhileLoadingCostsThatRequestAndNobodyElse) {
  for (int which = 1;; ++which) {
    Full full(GetParam());
    plant(*full.store, item_);
    const auto expected = item_.expectation();
    const auto context = request();
    bool happened = false;
    {
      const AllocationFault fault(which);
      try {
        full.controller->acquire({&expected, 1}, context);
      } catch (const std::bad_alloc&) {
      }
      happened = fault.happened();
    }
    expect_golden(serve_one(*full.controller, item_).view, item_);
    expect_whole(full, which);
    if (HasFailure()) return;
    if (!happened) {
      EXPECT_GT(which, 10) << "the allocations were not counted";
      return;
    }
  }
}

}  // namespace
}  // namespace vitrove::testing
