#include "pool/policies/lru.h"

#include <atomic>
#include <list>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "vitrove/eviction_policy.h"

namespace vitrove {
namespace {

// Every reading differs, so that the order is exact however fast the test runs.
struct CountingClock {
  static std::uint64_t now() noexcept {
    static std::atomic<std::uint64_t> ticks{0};
    return ++ticks;
  }
};
using CountingLru = LruPolicy<CountingClock>;

std::optional<PolicySlot> evict(EvictionPolicy& policy) {
  const auto victim = policy.next_victim([](PolicySlot) { return true; });
  if (victim) policy.on_erase(*victim);
  return victim;
}

std::vector<PolicySlot> evict_all(EvictionPolicy& policy) {
  std::vector<PolicySlot> order;
  while (const auto victim = evict(policy)) order.push_back(*victim);
  return order;
}

TEST(Lru, EvictsInOrderOfInsertionWhenNothingIsHit) {
  CountingLru lru;
  for (const PolicySlot slot : {3u, 1u, 2u}) lru.on_insert(slot, {});
  EXPECT_EQ(evict_all(lru), (std::vector<PolicySlot>{3, 1, 2}));
  EXPECT_EQ(evict(lru), std::nullopt);
}

TEST(Lru, AHitMakesAnEntryTheLastToGo) {
  CountingLru lru;
  for (PolicySlot slot = 0; slot < 4; ++slot) lru.on_insert(slot, {});
  lru.on_hit(0);
  lru.on_hit(2);
  lru.on_hit(0);
  EXPECT_EQ(evict_all(lru), (std::vector<PolicySlot>{1, 3, 2, 0}));
}

TEST(Lru, AHitBetweenTwoEvictionsCounts) {
  CountingLru lru;
  for (PolicySlot slot = 0; slot < 4; ++slot) lru.on_insert(slot, {});
  EXPECT_EQ(evict(lru), 0u);
  lru.on_hit(1);
  EXPECT_EQ(evict_all(lru), (std::vector<PolicySlot>{2, 3, 1}));
}

TEST(Lru, AnErasedSlotUsedAgainIsANewEntry) {
  CountingLru lru;
  for (PolicySlot slot = 0; slot < 3; ++slot) lru.on_insert(slot, {});
  lru.next_victim([](PolicySlot) { return false; });  // has a snapshot with slot 0 in front
  lru.on_erase(0);
  lru.on_insert(0, {});
  EXPECT_EQ(evict_all(lru), (std::vector<PolicySlot>{1, 2, 0}));
}

TEST(Lru, ALateHitOnAnErasedSlotDoesNotBringItBack) {
  CountingLru lru;
  lru.on_insert(0, {});
  lru.on_insert(1, {});
  lru.on_erase(0);
  lru.on_hit(0);
  EXPECT_EQ(evict_all(lru), (std::vector<PolicySlot>{1}));
}

TEST(Lru, OffersEveryEntryOnceOldestFirstThenGivesUp) {
  CountingLru lru;
  constexpr PolicySlot count = 5000;  // many snapshots' worth
  for (PolicySlot slot = 0; slot < count; ++slot) lru.on_insert(slot, {});
  std::vector<PolicySlot> offered;
  const auto victim = lru.next_victim([&](PolicySlot slot) {
    offered.push_back(slot);
    return false;
  });
  EXPECT_EQ(victim, std::nullopt);
  ASSERT_EQ(offered.size(), count);
  for (PolicySlot slot = 0; slot < count; ++slot) ASSERT_EQ(offered[slot], slot);
}

TEST(Lru, APinnedEntryIsPassedOverAndOfferedFirstNextTime) {
  CountingLru lru;
  for (PolicySlot slot = 0; slot < 5; ++slot) lru.on_insert(slot, {});
  const std::set<PolicySlot> pinned{0, 2};
  const auto take = [&](PolicySlot slot) { return !pinned.contains(slot); };
  for (const PolicySlot expected : {1u, 3u}) {
    const auto victim = lru.next_victim(take);
    ASSERT_EQ(victim, expected);
    lru.on_erase(*victim);
  }
  EXPECT_EQ(evict_all(lru), (std::vector<PolicySlot>{0, 2, 4}));
}

// The textbook form of LRU: a list moved on every access.
class ListModel {
 public:
  void insert(PolicySlot slot) { order_.push_back(slot); }
  void erase(PolicySlot slot) { order_.remove(slot); }
  void hit(PolicySlot slot) {
    erase(slot);
    insert(slot);
  }
  std::optional<PolicySlot> victim(const std::set<PolicySlot>& pinned) const {
    for (const PolicySlot slot : order_) {
      if (!pinned.contains(slot)) return slot;
    }
    return std::nullopt;
  }
  const std::list<PolicySlot>& order() const { return order_; }

 private:
  std::list<PolicySlot> order_;
};

TEST(Lru, AgreesWithAListMovedOnEveryAccess) {
  std::mt19937 random(7);
  CountingLru lru;
  ListModel model;
  std::set<PolicySlot> absent;
  std::set<PolicySlot> pinned;
  for (PolicySlot slot = 0; slot < 300; ++slot) absent.insert(slot);
  const auto pick = [&](const auto& set) {
    return *std::next(set.begin(), static_cast<long>(random() % set.size()));
  };
  for (int step = 0; step < 30000; ++step) {
    const auto roll = random() % 100;
    if (roll < 60 && !model.order().empty()) {
      const PolicySlot slot = pick(model.order());
      lru.on_hit(slot);
      model.hit(slot);
    } else if (roll < 80 && !absent.empty()) {
      const PolicySlot slot = pick(absent);
      absent.erase(slot);
      lru.on_insert(slot, {});
      model.insert(slot);
    } else if (roll < 84 && !model.order().empty()) {
      const PolicySlot slot = pick(model.order());
      lru.on_erase(slot);
      model.erase(slot);
      pinned.erase(slot);
      absent.insert(slot);
    } else if (roll < 86 && !model.order().empty()) {
      pinned.insert(pick(model.order()));
    } else if (roll < 88 && !pinned.empty()) {
      pinned.erase(pick(pinned));
    } else if (roll >= 88) {
      const auto expected = model.victim(pinned);
      const auto victim = lru.next_victim([&](PolicySlot slot) { return !pinned.contains(slot); });
      ASSERT_EQ(victim, expected) << "at step " << step;
      if (!victim) continue;
      lru.on_erase(*victim);
      model.erase(*victim);
      absent.insert(*victim);
    }
  }
}

TEST(Lru, ByNameItOrdersByTheProcessorsClock) {
  auto lru = make_eviction_policy("lru");
  EXPECT_EQ(lru->name(), "lru");
  const auto next_tick = [] {
    for (const auto now = CycleClock::now(); CycleClock::now() == now;) {
    }
  };
  for (PolicySlot slot = 0; slot < 3; ++slot) {
    lru->on_insert(slot, {});
    next_tick();
  }
  lru->on_hit(0);
  EXPECT_EQ(evict_all(*lru), (std::vector<PolicySlot>{1, 2, 0}));
}

}  // namespace
}  // namespace vitrove
