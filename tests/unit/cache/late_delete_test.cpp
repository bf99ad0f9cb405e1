// Deletes that act late (field case B32): however long after they were asked for, they never take
// what was put under the key meanwhile, and what they are about to take is not served.
#include <cstring>

#include "contract/forwarding_store.h"
#include "support.h"

namespace vitrove::testing {
namespace {

// The same key with other rows, so that a test sees whose they are.
std::vector<float> rows_of_generation(const Picture& item, int generation) {
  return std::vector<float>(std::size_t{item.rows} * dim, static_cast<float>(generation));
}

// All rows of a view say the same.
int generation_of(const EmbeddingView& view) {
  const auto rows = rows_of(view);
  float first = 0;
  std::memcpy(&first, rows.data(), sizeof first);
  const auto generation = static_cast<int>(first);
  const std::vector<float> same(rows.size() / sizeof(float), first);
  EXPECT_TRUE(std::ranges::equal(rows, bytes_of(same))) << "rows of several generations";
  return generation;
}

EmbeddingView publish_generation(FillTicket& ticket, const Picture& item, int generation) {
  const auto rows = rows_of_generation(item, generation);
  return ticket.publish({bytes_of(rows), item.rows, item.side(), 1ms});
}

// What a store holds of it; nothing when that is nothing whole.
std::optional<int> stored_generation(EmbeddingStore& store, const Picture& item) {
  const Bytes value = read_back(store, item.key());
  if (inspect(value, item.key()) != Reject::none) return std::nullopt;
  float first = 0;
  std::memcpy(&first, value.data() + value_header_size, sizeof first);
  return static_cast<int>(first);
}

// Its deletes do not notice that whoever asked for them has left; with `dawdles`, its puts and
// deletes take some milliseconds or none.
class SlowStore final : public ForwardingStore {
 public:
  explicit SlowStore(bool dawdles) : dawdles_(dawdles) {}

  std::vector<StoreResult> batch_put_from_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const ConstBufferList> lists,
                                                        PutMode mode,
                                                        const StoreContext& context) override {
    dawdle();
    auto results = inner->batch_put_from_multi_buffers(keys, lists, mode, context);
    dawdle();
    return results;
  }
  std::vector<StoreResult> batch_remove(std::span<const EmbeddingKey> keys,
                                        const StoreContext&) override {
    dawdle();
    return inner->batch_remove(keys, {});
  }

 private:
  void dawdle() {
    if (!dawdles_) return;
    std::this_thread::sleep_for(std::chrono::microseconds(calls_++ * 977 % 4000));
  }
  const bool dawdles_;
  std::atomic<unsigned> calls_{0};
};

class LateDelete : public ::testing::Test {
 protected:
  static ControllerOptions options() {
    ControllerOptions options = small_pool(16);
    options.put_threads = 2;  // one of them hangs
    options.pool.poison_on_free = true;
    return options;
  }

  EmbeddingView insert(int generation) {
    auto ticket = acquire_one(controller_, item_);
    auto* const fill = std::get_if<FillTicket>(&ticket);
    if (fill == nullptr) {
      ADD_FAILURE() << "generation " << generation << " found an older one";
      return {};
    }
    return publish_generation(*fill, item_, generation);
  }
  void insert_and_store(int generation) {
    insert(generation);
    settle(controller_);
    ASSERT_EQ(stored(), generation);
  }
  // Both threads that could make a delete are in puts that do not come back.
  void hang_in_puts() {
    store_->add({.op = StoreOp::put, .fault = Fault::hold_before, .times = 2});
    for (const std::size_t hanging : {1U, 2U}) {
      serve_one(controller_, picture(10 + static_cast<int>(hanging)));
      ASSERT_TRUE(store_->gate().wait_for_waiting(hanging));
    }
  }
  std::optional<int> stored() { return stored_generation(store_->inner(), item_); }
  // The delete stands in the store, and whoever asked for it has gone.
  template <typename Delete>
  void leave_at_the_gate(Delete call) {
    std::stop_source leave;
    auto context = request();
    context.cancel = leave.get_token();
    std::jthread caller([&] { call(context); });
    ASSERT_TRUE(store_->gate().wait_for_waiting(1));
    leave.request_stop();
  }
  // It acts now; the pool is emptied, so that the store has to answer.
  void expect_generation_outlives_it(int generation) {
    EXPECT_EQ(generation_of(controller_.peek(item_.key())), generation);
    // A put that did not wait for the delete would come before it.
    std::this_thread::sleep_for(50ms);
    store_->heal();
    settle(controller_);
    EXPECT_EQ(stored(), generation);
    controller_.flush(FlushScope::local, std::nullopt, request());
    {
      auto again = acquire_one(controller_, item_);
      ASSERT_TRUE(std::holds_alternative<Hit>(again));
      EXPECT_EQ(std::get<Hit>(again).source, Source::store);
      EXPECT_EQ(generation_of(std::get<Hit>(again).view), generation);
    }
    settle(controller_);
    controller_.check_invariants();
  }

  const Picture item_ = picture(1);
  std::shared_ptr<FaultyStore> store_ =
      std::make_shared<FaultyStore>(std::make_shared<SlowStore>(false));
  EmbeddingCacheController controller_{options(), {store_}};
};

TEST_F(LateDelete, OfARemovalLeavesTheNewValueInTheStore) {
  insert_and_store(1);
  EmbeddingView old = controller_.peek(item_.key());  // its pages are freed late as well
  store_->add({.op = StoreOp::remove, .fault = Fault::hold_before, .times = 1});
  leave_at_the_gate([&](const RequestContext& context) {
    EXPECT_FALSE(controller_.remove(item_.key(), std::nullopt, context).tiers[1].complete);
  });
  insert(2);
  EXPECT_EQ(generation_of(old), 1);
  old.release();
  expect_generation_outlives_it(2);
}

TEST_F(LateDelete, OfAFlushLeavesTheNewValueInTheStore) {
  for (const auto& model : {std::optional<Digest256>(), std::optional(sha256("model"))}) {
    insert_and_store(1);
    store_->add({.op = StoreOp::remove, .fault = Fault::hold_before, .times = 1});
    leave_at_the_gate(
        [&](const RequestContext& context) { controller_.flush(FlushScope::all, model, context); });
    insert(2);
    expect_generation_outlives_it(2);
    controller_.flush(FlushScope::all, std::nullopt, request());
    store_->gate().close();
  }
}

// The listing has shown the key, and its value was replaced before it is removed.
TEST_F(LateDelete, OfAFlushWhoseListingTakesLongLeavesTheNewValueInTheStore) {
  insert_and_store(1);
  store_->add({.op = StoreOp::list, .fault = Fault::hold_after, .times = 1});
  std::jthread flusher([&] { controller_.flush(FlushScope::all, std::nullopt, request()); });
  ASSERT_TRUE(store_->gate().wait_for_waiting(1));
  insert(2);
  store_->gate().open();
  flusher.join();
  expect_generation_outlives_it(2);
}

// A put that was under way when its key was removed takes itself back, in its own time.
TEST_F(LateDelete, OfARevokedPutLeavesTheNewValueInTheStore) {
  store_->add({.op = StoreOp::put, .fault = Fault::hold_after, .times = 1});
  insert(1);
  ASSERT_TRUE(store_->gate().wait_for_waiting(1));
  ASSERT_EQ(stored(), 1);
  // The removal waits for that put until its caller has no more time.
  auto soon = request();
  soon.deadline = Clock::now();
  controller_.remove(item_.key(), std::nullopt, soon);
  insert(2);  // though the store still has the first
  expect_generation_outlives_it(2);
}

// It has not happened: what it was to take is not served, and makes way for the next put.
TEST_F(LateDelete, ThatIsGivenUpLeavesNothingOldBehindTheNewValue) {
  insert_and_store(1);
  store_->add({.op = StoreOp::remove, .status = StoreStatus::io_error, .times = 2});
  for (const bool flushes : {false, true}) {
    const int generation = flushes ? 3 : 2;
    const FlushReport report = flushes ? controller_.flush(FlushScope::all, std::nullopt, request())
                                       : controller_.remove(item_.key(), std::nullopt, request());
    EXPECT_FALSE(report.tiers[1].complete);
    insert(generation);
    settle(controller_);
    EXPECT_EQ(stored(), generation);
  }
  controller_.check_invariants();
}

TEST_F(LateDelete, ThatWasNeverMadeLeavesNothingOldBehindTheNewValue) {
  insert_and_store(1);
  hang_in_puts();
  auto soon = request();
  soon.deadline = Clock::now() + 20ms;
  EXPECT_FALSE(controller_.remove(item_.key(), std::nullopt, soon).tiers[1].complete);
  insert(2);
  store_->heal();
  settle(controller_);
  EXPECT_EQ(stored(), 2);
  controller_.check_invariants();
}

// A read that began before the delete says nothing about what came after.
TEST_F(LateDelete, ThatIsGivenUpDuringAReadLeavesNothingOldToBeBelieved) {
  insert_and_store(1);
  controller_.flush(FlushScope::local, std::nullopt, request());
  store_->add({.op = StoreOp::get, .fault = Fault::hold_after, .times = 1});
  store_->add({.op = StoreOp::remove, .status = StoreStatus::io_error, .times = 1});
  std::jthread reader([&] { acquire_one(controller_, item_); });
  ASSERT_TRUE(store_->gate().wait_for_waiting(1));
  EXPECT_FALSE(controller_.remove(item_.key(), std::nullopt, request()).tiers[1].complete);
  store_->gate().open();
  reader.join();
  insert(2);
  settle(controller_);
  EXPECT_EQ(stored(), 2);
  controller_.check_invariants();
}

// Its listing fails, when it is let.
class FailingLister final : public ForwardingStore {
 public:
  StoreResult list(const ListOptions&, const std::function<bool(const ListedValue&)>&,
                   const StoreContext&) override {
    gate.pass();
    return {StoreStatus::io_error};
  }
  Gate gate{false};
};

// It names nothing; and no thread was free to see that the put was to wait for it.
TEST(LateDeletes, OfAFlushThatFailsLeaveNothingOldBehindTheNewValue) {
  const auto lister = std::make_shared<FailingLister>();
  const auto store = std::make_shared<FaultyStore>(lister);
  ControllerOptions options = small_pool(16);
  options.put_threads = 2;
  EmbeddingCacheController controller(options, {store});
  const Picture item = picture(1);
  auto first = lead(controller, item);
  publish_generation(first, item, 1);
  settle(controller);

  store->add({.op = StoreOp::remove, .fault = Fault::hold_before, .times = 1});
  std::jthread remover([&] { controller.remove(picture(2).key(), std::nullopt, request()); });
  ASSERT_TRUE(store->gate().wait_for_waiting(1));
  std::jthread flusher([&] { controller.flush(FlushScope::all, std::nullopt, request()); });
  ASSERT_TRUE(lister->gate.wait_for_waiting(1));
  auto second = lead(controller, item);
  publish_generation(second, item, 2);
  lister->gate.open();
  flusher.join();
  store->gate().open();
  remover.join();
  settle(controller);
  EXPECT_EQ(stored_generation(*lister, item), 2);
  controller.check_invariants();
}

// It may still come, though the store says that nothing is there.
TEST(LateDeletes, AreNotCompleteBeforeAPutUnderWayHasEnded) {
  const auto store = std::make_shared<FaultyStore>(std::make_shared<SlowStore>(false));
  ControllerOptions options = small_pool(16);
  options.put_threads = 2;
  options.put_timeout = 50ms;
  EmbeddingCacheController controller(options, {store});
  const Picture item = picture(1);
  for (const auto& tenant :
       {std::optional<Digest256>(), std::optional(tenant_digest(item.tenant))}) {
    store->add({.op = StoreOp::put, .fault = Fault::hold_before, .times = 1});
    serve_one(controller, item);
    ASSERT_TRUE(store->gate().wait_for_waiting(1));
    EXPECT_FALSE(controller.remove(item.key(), tenant, request()).tiers[1].complete);
    store->gate().open();
    settle(controller);
    store->gate().close();
    EXPECT_TRUE(eventually(
        [&] { return controller.remove(item.key(), tenant, request()).tiers[1].complete; }));
    EXPECT_TRUE(read_back(store->inner(), item.key()).empty());
  }
  controller.check_invariants();
}

// What is not read for a while is still there, and still his.
TEST_F(LateDelete, ThatIsGivenUpIsNotSaidToBeAbsentToATenant) {
  insert_and_store(1);
  const auto tenant = tenant_digest(item_.tenant);
  const auto remove = [&] { return controller_.remove(item_.key(), tenant, request()).tiers[1]; };
  store_->add({.op = StoreOp::remove, .status = StoreStatus::io_error, .times = 2});
  EXPECT_FALSE(remove().complete);
  EXPECT_FALSE(remove().complete);
  EXPECT_EQ(remove().removed, 1U);
  EXPECT_TRUE(remove().complete) << "now it is absent";
  store_->add({.op = StoreOp::exist, .status = StoreStatus::io_error, .times = 1});
  EXPECT_FALSE(remove().complete) << "the store does not say";
  EXPECT_TRUE(stored() == std::nullopt);
}

// A put that is to wait would make all who wait for the claim wait, too.
TEST_F(LateDelete, LetsNobodyClaimWhatItIsToTake) {
  insert_and_store(1);
  store_->add({.op = StoreOp::remove, .fault = Fault::hold_before, .times = 1});
  leave_at_the_gate([&](const RequestContext& context) {
    controller_.remove(item_.key(), std::nullopt, context);
  });
  const auto claims = store_->calls(StoreOp::claim);
  auto ticket = lead(controller_, item_);
  EXPECT_EQ(ticket.claim(request()).outcome, FillTicket::Claim::encode_it);
  EXPECT_EQ(store_->calls(StoreOp::claim), claims);
  publish_generation(ticket, item_, 2);
  auto other = lead(controller_, picture(2));
  other.claim(request());
  EXPECT_EQ(store_->calls(StoreOp::claim), claims + 1) << "others are claimed as ever";
  publish(other, picture(2));
  store_->heal();
  settle(controller_);
  EXPECT_EQ(stored(), 2);
}

// Who claimed before the delete came, and whose put has to wait for it: others wait for its claim
// no longer than for that of somebody dead.
class LateDeleteOfAClaimedKey : public ::testing::Test {
 protected:
  static ControllerOptions options() {
    ControllerOptions options = small_pool(16);
    options.claim_ttl = 300ms;
    return options;
  }
  auto delete_key() {
    return ControllerAccess::impl(controller_).tiers.puts(0).fence({item_.key()});
  }
  FillTicket claimed() {
    FillTicket ticket = lead(controller_, item_);
    EXPECT_EQ(ticket.claim(request()).outcome, FillTicket::Claim::encode_it);
    return ticket;
  }
  void expect_that_the_claim_ends() {
    ClaimToken token;
    EXPECT_TRUE(
        eventually([&] { return store_->inner().claim(item_.key(), 1ms, token, {}).ok(); }));
    EXPECT_EQ(controller_.stats().stores[0].put.pending, pending_);
  }
  void expect_that_the_put_comes() {
    store_->heal();
    settle(controller_);
    EXPECT_FALSE(read_back(store_->inner(), item_.key()).empty());
    controller_.check_invariants();
  }

  const Picture item_ = picture(1);
  std::uint64_t pending_ = 1;
  std::shared_ptr<FaultyStore> store_ = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller_{options(), {store_}};
};

TEST_F(LateDeleteOfAClaimedKey, LetsTheClaimOfAPutThatIsToWaitEndByItself) {
  FillTicket ticket = claimed();
  auto fence = delete_key();
  publish(ticket, item_);
  expect_that_the_claim_ends();
  fence.reset();
  expect_that_the_put_comes();
}

TEST_F(LateDeleteOfAClaimedKey, LetsTheClaimOfAPutThatWaitsAlreadyEndByItself) {
  store_->add({.op = StoreOp::put, .fault = Fault::hold_before, .times = 1});
  serve_one(controller_, picture(2));  // in the only thread for puts
  ASSERT_TRUE(store_->gate().wait_for_waiting(1));
  FillTicket ticket = claimed();
  publish(ticket, item_);
  auto fence = delete_key();
  pending_ = 2;
  expect_that_the_claim_ends();
  fence.reset();
  expect_that_the_put_comes();
}

// A put that has waited for a delete is dropped like any other while puts pause. What the delete
// has failed to take is nevertheless not left to be believed: the next put, whenever, replaces it.
TEST_F(LateDelete, ThatIsGivenUpWhilePutsPauseLeavesNothingOldToBeBelieved) {
  ControllerOptions options = this->options();
  options.breaker_faults = 1;
  options.breaker_pause = 1s;
  EmbeddingCacheController controller(options, {store_});
  const auto insert = [&](int generation) {
    auto ticket = lead(controller, item_);
    publish_generation(ticket, item_, generation);
  };
  insert(1);
  settle(controller);
  ASSERT_EQ(stored(), 1);
  store_->add({.op = StoreOp::put, .status = StoreStatus::no_space, .times = 1});
  store_->add({.op = StoreOp::remove, .status = StoreStatus::io_error, .times = 1});
  serve_one(controller, picture(2));
  settle(controller);
  auto fence = ControllerAccess::impl(controller).tiers.puts(0).fence({item_.key()});
  EXPECT_FALSE(controller.remove(item_.key(), std::nullopt, request()).tiers[1].complete);
  insert(2);
  fence.reset();
  settle(controller);
  // Unless the machine was so slow that the pause was over.
  const bool was_dropped = controller.stats().puts_dropped == 1;
  EXPECT_EQ(stored(), was_dropped ? 1 : 2);
  controller.flush(FlushScope::local, std::nullopt, request());
  ASSERT_TRUE(eventually([&] {
    auto answer = acquire_one(controller, item_);
    auto* const fill = std::get_if<FillTicket>(&answer);
    if (fill == nullptr) {
      EXPECT_EQ(generation_of(std::get<Hit>(answer).view), 2) << "the first is not believed";
    } else {
      publish_generation(*fill, item_, 2);
      settle(controller);
      answer = Hit{};
      controller.flush(FlushScope::local, std::nullopt, request());
    }
    return stored() == 2;
  }));
  controller.check_invariants();
}

TEST_F(LateDelete, HoldsUpNoOtherKeyAndNoOtherModel) {
  insert_and_store(1);
  Picture of_another_model = picture(2);
  of_another_model.model = "another";
  store_->add({.op = StoreOp::remove, .fault = Fault::hold_before, .times = 1});
  leave_at_the_gate([&](const RequestContext& context) {
    controller_.flush(FlushScope::all, sha256("model"), context);
  });
  serve_one(controller_, of_another_model);
  EXPECT_TRUE(
      eventually([&] { return !read_back(store_->inner(), of_another_model.key()).empty(); }));
  controller_.flush(FlushScope::local, std::nullopt, request());
  EXPECT_EQ(serve_one(controller_, of_another_model).source, Source::store);
  store_->heal();
  settle(controller_);
  controller_.check_invariants();
}

// The case as it is written: remove, insert and read while the delete and the free are late, by
// eight threads, each of which knows what its own key has to say. A pool that holds few of them
// makes the store answer too.
TEST(LateDeletes, NeverTakeOrShowTheWrongGenerationUnderLoad) {
  const auto store = std::make_shared<SlowStore>(true);
  ControllerOptions options = small_pool(32);
  options.pool.poison_on_free = true;
  options.put_threads = 16;
  EmbeddingCacheController controller(options, {store});
  constexpr int threads = 8;
  constexpr int others = 60;  // that push them out, and come from the store
  for (int i = 0; i < others; ++i) plant(*store->inner, picture(100 + i));
  std::vector<int> latest(threads);
  std::vector<std::jthread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      const Picture mine = picture(t);
      int& generation = latest[static_cast<std::size_t>(t)];
      EmbeddingView kept;  // of the entry before: its pages are freed late
      for (int i = 0; i < rounds(125); ++i) {
        auto soon = request();
        soon.deadline = Clock::now() + std::chrono::microseconds(i * 131 % 3000);
        controller.remove(mine.key(), std::nullopt, soon);
        for (int reads = 0; reads < 3; ++reads) {
          auto answer = acquire_one(controller, mine);
          if (auto* fill = std::get_if<FillTicket>(&answer)) {
            kept = publish_generation(*fill, mine, ++generation);
          } else {
            kept = std::move(std::get<Hit>(answer).view);
          }
          ASSERT_EQ(generation_of(kept), generation) << "key " << t << ", round " << i;
          serve_one(controller, picture(100 + (t * 31 + i * 7 + reads) % others));
        }
      }
    });
  }
  workers.clear();
  settle(controller);
  // Puts are dropped when all threads are in deletes that are overdue at the same time.
  const bool all_are_there = controller.stats().puts_dropped == 0;
  for (int t = 0; t < threads && all_are_there; ++t) {
    EXPECT_EQ(stored_generation(*store->inner, picture(t)), latest[static_cast<std::size_t>(t)])
        << t;
  }
  controller.check_invariants();
}

}  // namespace
}  // namespace vitrove::testing
