// What a claim keeper does when its store takes claims back slowly.
#include "cache/claim_keeper.h"

#include "contract/valueless_store.h"
#include "support.h"

namespace vitrove::testing {
namespace {

// Remembers the order of calls. The first release stands at the gate.
class SlowToRelease final : public ValuelessStore {
 public:
  StoreResult renew(const EmbeddingKey&, const ClaimToken&, std::chrono::milliseconds,
                    const StoreContext&) override {
    note('n');
    return {renewal_};
  }
  StoreResult release(const EmbeddingKey&, const ClaimToken&, ClaimOutcome,
                      const StoreContext&) override {
    note('r');
    gate_.pass();
    return {release_};
  }
  // What the store answers; before it is asked.
  void answer(StoreStatus renewal, StoreStatus release) {
    renewal_ = renewal;
    release_ = release;
  }

  Gate& gate() { return gate_; }
  std::string calls() const {
    std::lock_guard lock(mutex_);
    return calls_;
  }
  void forget_calls() {
    std::lock_guard lock(mutex_);
    calls_.clear();
  }

 private:
  void note(char call) {
    std::lock_guard lock(mutex_);
    calls_ += call;
  }

  StoreStatus renewal_ = StoreStatus::ok;
  StoreStatus release_ = StoreStatus::ok;
  Gate gate_{false};
  mutable std::mutex mutex_;
  std::string calls_;
};

class Keeper : public ::testing::Test {
 protected:
  ClaimHold hold(ClaimKeeper& keeper, int number) {
    return keeper.hold({picture(number).key(), sha256("model"), 0, tier_, {}});
  }
  // The keeper's thread is in a call that does not come back before the gate is opened; what it
  // did before is forgotten.
  void keep_busy(ClaimKeeper& keeper) {
    hold(keeper, 0).let_go();
    ASSERT_TRUE(store_->gate().wait_for_waiting(1));
    store_->forget_calls();
  }

  std::shared_ptr<SlowToRelease> store_ = std::make_shared<SlowToRelease>();
  std::shared_ptr<Tier> tier_ = std::make_shared<Tier>(store_, "slow", TierOptions{});
};

TEST_F(Keeper, RenewsBeforeItReleases) {
  ClaimKeeper keeper(3s, patience);
  keep_busy(keeper);
  const ClaimHold held = hold(keeper, 1);
  const auto due = Clock::now() + 1s;
  for (int number = 2; number < 10; ++number) hold(keeper, number).let_go();
  ASSERT_TRUE(eventually([&] { return Clock::now() > due; }));
  store_->gate().open();
  ASSERT_TRUE(eventually([&] { return !store_->calls().empty(); }));
  EXPECT_EQ(store_->calls().front(), 'n');
}

TEST_F(Keeper, ForgetsWhatHasEndedByItself) {
  ClaimKeeper keeper(50ms, patience);
  keep_busy(keeper);
  for (int number = 1; number < 10; ++number) hold(keeper, number).let_go();
  const auto over = Clock::now() + 50ms;
  ASSERT_TRUE(eventually([&] { return Clock::now() > over; }));
  store_->gate().open();
  EXPECT_TRUE(keeper.wait_idle(Clock::now() + patience));
  EXPECT_EQ(store_->calls(), "");
}

TEST_F(Keeper, CountsWhatAnotherTookOver) {
  store_->answer(StoreStatus::conflict, StoreStatus::ok);
  ClaimKeeper keeper(3ms, patience);
  const ClaimHold lost = hold(keeper, 1);
  EXPECT_TRUE(eventually([&] { return keeper.lost() == 1; }));
  EXPECT_EQ(keeper.unreleased(), 0U);
  EXPECT_TRUE(keeper.wait_idle(Clock::now() + patience)) << "there is nothing left to hold";
}

TEST_F(Keeper, CountsWhatTheStoreDoesNotTakeBack) {
  store_->answer(StoreStatus::ok, StoreStatus::denied);
  store_->gate().open();
  ClaimKeeper keeper(1h, patience);
  hold(keeper, 1).let_go();
  EXPECT_TRUE(eventually([&] { return keeper.unreleased() == 1; }));
  EXPECT_EQ(keeper.lost(), 0U);
}

TEST_F(Keeper, RemembersSoManyAndNoMore) {
  ClaimKeeper keeper(1h, patience);
  keep_busy(keeper);
  for (int number = 1; number < 6000; ++number) hold(keeper, number).let_go();
  store_->gate().open();
  EXPECT_TRUE(keeper.wait_idle(Clock::now() + patience));
  EXPECT_EQ(store_->calls().size(), 4096U);
  EXPECT_EQ(keeper.unreleased(), 5999U - 4096U);
}

TEST_F(Keeper, CountsWhatTurnsOutToBeAnothersWhenItIsReleased) {
  store_->answer(StoreStatus::ok, StoreStatus::conflict);
  store_->gate().open();
  ClaimKeeper keeper(1h, patience);
  hold(keeper, 1).let_go();
  EXPECT_TRUE(eventually([&] { return keeper.lost() == 1; }));
  EXPECT_EQ(keeper.unreleased(), 0U);
}

void let_go_stored(ClaimHold held) {
  held.was_stored();
  held.let_go();
}

TEST_F(Keeper, ReleasesClaimsOfStoredValuesTogether) {
  store_->gate().open();
  ClaimKeeper keeper(1h, patience);
  for (int number = 1; number < 4; ++number) let_go_stored(hold(keeper, number));
  hold(keeper, 4).let_go();
  ASSERT_TRUE(eventually([&] { return !store_->calls().empty(); }));
  EXPECT_EQ(store_->calls(), "r") << "somebody may wait for a value that does not come";
  EXPECT_TRUE(keeper.wait_idle(Clock::now() + patience)) << "who waits is not kept waiting";
  EXPECT_EQ(store_->calls(), "rrrr");
}

TEST_F(Keeper, ReleasesThemByItselfToo) {
  store_->gate().open();
  ClaimKeeper keeper(100s, patience);  // a hundredth of that is soon
  let_go_stored(hold(keeper, 1));
  EXPECT_TRUE(eventually([&] { return store_->calls() == "r"; }));
}

TEST_F(Keeper, AFlushReleasesThemAtOnce) {
  store_->gate().open();
  ClaimKeeper keeper(1h, patience);
  let_go_stored(hold(keeper, 1));
  let_go_stored(hold(keeper, 2));
  keeper.let_go([](const ClaimKeeper::Claimed& one) { return one.key == picture(1).key(); });
  EXPECT_TRUE(eventually([&] { return store_->calls() == "r"; }));
}

TEST_F(Keeper, ReleasesThemAtTheEnd) {
  store_->gate().open();
  {
    ClaimKeeper keeper(1h, patience);
    hold(keeper, 1).let_go();
    ASSERT_TRUE(eventually([&] { return store_->calls() == "r"; })) << "its thread is at work";
    let_go_stored(hold(keeper, 2));
  }
  // By a thread that may be left behind on a busy machine.
  EXPECT_TRUE(eventually([&] { return store_->calls() == "rr"; }));
}

TEST_F(Keeper, RenewsWhatWasHeldWhileItHeldOthers) {
  ClaimKeeper keeper(300ms, patience);
  std::optional<ClaimHold> first = hold(keeper, 1);
  const ClaimHold second = hold(keeper, 2);
  let_go_stored(*std::exchange(first, std::nullopt));
  store_->gate().open();
  EXPECT_TRUE(eventually([&] { return store_->calls().find('n') != std::string::npos; }));
}

}  // namespace
}  // namespace vitrove::testing
