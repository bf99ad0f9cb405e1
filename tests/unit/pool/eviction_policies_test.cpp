// What every policy promises, and what sets each apart.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "vitrove/error.h"
#include "vitrove/eviction_policy.h"

namespace vitrove {
namespace {

PolicyItem item_of(std::uint64_t hash, std::uint64_t bytes = 1000, std::uint64_t cost_us = 1000) {
  return {.key_hash = hash, .bytes = bytes, .cost_us = cost_us};
}

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

class EveryPolicy : public testing::TestWithParam<std::string_view> {
 protected:
  std::unique_ptr<EvictionPolicy> policy_ = make_eviction_policy(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicy, testing::ValuesIn(eviction_policies()),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(EveryPolicy, AnswersToItsName) { EXPECT_EQ(policy_->name(), GetParam()); }

TEST_P(EveryPolicy, HasNoVictimWhenItHoldsNothing) {
  EXPECT_EQ(evict(*policy_), std::nullopt);
  policy_->on_insert(5, item_of(5));
  EXPECT_EQ(evict(*policy_), 5u);
  EXPECT_EQ(evict(*policy_), std::nullopt);
}

TEST_P(EveryPolicy, OffersEveryEntryOnceHoweverOftenItWasHitThenGivesUp) {
  std::mt19937 random(3);
  constexpr PolicySlot count = 3000;
  for (PolicySlot slot = 0; slot < count; ++slot) {
    policy_->on_insert(slot, item_of(slot, 1 + random() % 100000, random() % 5000));
  }
  for (PolicySlot slot = 0; slot < count; slot += 3) {  // their slots are used again
    policy_->on_erase(slot);
    policy_->on_insert(slot, item_of(slot, 1 + random() % 100000, random() % 5000));
  }
  for (int call = 0; call < 3; ++call) {
    for (int hit = 0; hit < 5000; ++hit) policy_->on_hit(random() % count);
    std::vector<PolicySlot> offered;
    const auto victim = policy_->next_victim([&](PolicySlot slot) {
      offered.push_back(slot);
      return false;
    });
    EXPECT_EQ(victim, std::nullopt);
    ASSERT_EQ(offered.size(), count);
    EXPECT_EQ(std::set<PolicySlot>(offered.begin(), offered.end()).size(), count);
  }
}

TEST_P(EveryPolicy, FindsTheOnlyEntryThatIsNotPinned) {
  for (PolicySlot slot = 0; slot < 500; ++slot) policy_->on_insert(slot, item_of(slot));
  for (const PolicySlot loose : {0u, 77u, 499u}) {
    const auto victim = policy_->next_victim([&](PolicySlot slot) { return slot == loose; });
    ASSERT_EQ(victim, loose);
    policy_->on_erase(loose);
  }
}

TEST_P(EveryPolicy, ALateHitOnAnErasedSlotDoesNotBringItBack) {
  for (PolicySlot slot = 0; slot < 3; ++slot) policy_->on_insert(slot, item_of(slot));
  policy_->on_erase(1);
  policy_->on_hit(1);
  const auto order = evict_all(*policy_);
  EXPECT_EQ(std::set<PolicySlot>(order.begin(), order.end()), (std::set<PolicySlot>{0, 2}));
}

TEST_P(EveryPolicy, NeverOffersWhatIsGoneAndLosesNothing) {
  std::mt19937 random(13);
  std::set<PolicySlot> live;
  std::set<PolicySlot> pinned;
  for (int step = 0; step < 20000; ++step) {
    const PolicySlot slot = random() % 400;
    const auto roll = random() % 10;
    if (roll < 3) {
      if (live.insert(slot).second) {
        policy_->on_insert(slot, item_of(random() % 1000, random() % 9000, random() % 9000));
      }
    } else if (roll < 7) {
      if (live.contains(slot)) policy_->on_hit(slot);
    } else if (roll < 8) {
      pinned.erase(slot);
      if (live.erase(slot) > 0) policy_->on_erase(slot);
    } else if (roll < 9) {
      if (live.contains(slot)) pinned.insert(slot);
    } else {
      const auto victim = policy_->next_victim([&](PolicySlot offered) {
        EXPECT_TRUE(live.contains(offered));
        return !pinned.contains(offered);
      });
      ASSERT_EQ(victim.has_value(), live.size() > pinned.size());
      if (victim) {
        live.erase(*victim);
        policy_->on_erase(*victim);
      }
      if (random() % 4 == 0) pinned.clear();
    }
  }
  const auto rest = evict_all(*policy_);
  EXPECT_EQ(rest.size(), live.size());
  EXPECT_EQ(std::set<PolicySlot>(rest.begin(), rest.end()), live);
}

TEST_P(EveryPolicy, TakesHitsFromManyThreadsWhileEntriesComeAndGo) {
  constexpr PolicySlot steady = 1000;
  constexpr PolicySlot passing = 4000;
  for (PolicySlot slot = 0; slot < steady; ++slot) policy_->on_insert(slot, item_of(slot));
  std::atomic<bool> done{false};
  std::vector<std::jthread> threads;
  for (PolicySlot offset = 0; offset < 2; ++offset) {
    threads.emplace_back([&, offset] {
      while (!done) {
        for (PolicySlot slot = offset; slot < steady; slot += 2) policy_->on_hit(slot);
      }
    });
  }
  std::set<PolicySlot> live;
  for (PolicySlot slot = 0; slot < steady; ++slot) live.insert(slot);
  for (PolicySlot slot = steady; slot < steady + passing; ++slot) {
    policy_->on_insert(slot, item_of(slot));
    live.insert(slot);
    const auto victim = evict(*policy_);
    EXPECT_TRUE(victim && live.erase(*victim) == 1) << "evicted twice, or not at all";
    if (!victim) break;
  }
  // Refusing all while hits rain down ends too.
  EXPECT_EQ(policy_->next_victim([](PolicySlot) { return false; }), std::nullopt);
  done = true;
  threads.clear();
  const auto rest = evict_all(*policy_);
  EXPECT_EQ(std::set<PolicySlot>(rest.begin(), rest.end()), live);
}

// A cache of a fixed number of bytes in front of a trace of keys.
class TraceCache {
 public:
  TraceCache(std::string_view policy, std::uint64_t capacity)
      : policy_(make_eviction_policy(policy)), capacity_(capacity) {}

  // Answers whether it was a hit.
  bool access(std::uint64_t key, std::uint64_t bytes, std::uint64_t cost_us) {
    const auto found = slots_.find(key);
    if (found != slots_.end()) {
      policy_->on_hit(found->second);
      return true;
    }
    while (used_ + bytes > capacity_) {
      const PolicySlot victim = *evict(*policy_);
      used_ -= held_[victim].second;
      slots_.erase(held_[victim].first);
      free_.push_back(victim);
    }
    PolicySlot slot = static_cast<PolicySlot>(held_.size());
    if (free_.empty()) {
      held_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    held_[slot] = {key, bytes};
    slots_[key] = slot;
    used_ += bytes;
    policy_->on_insert(slot, item_of(key, bytes, cost_us));
    return false;
  }

 private:
  std::unique_ptr<EvictionPolicy> policy_;
  std::uint64_t capacity_;
  std::uint64_t used_ = 0;
  std::map<std::uint64_t, PolicySlot> slots_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> held_;  // by slot: key, bytes
  std::vector<PolicySlot> free_;
};

// A popular few, and a stream of pictures that are seen once.
double hit_rate_with_one_hit_wonders(std::string_view policy) {
  TraceCache cache(policy, 100);
  std::mt19937 random(41);
  std::uint64_t stranger = 1000000;
  int hits = 0;
  constexpr int accesses = 40000;
  for (int i = 0; i < accesses; ++i) {
    const bool popular = random() % 2 == 0;
    hits += cache.access(popular ? random() % 80 : ++stranger, 1, 1000) ? 1 : 0;
  }
  return static_cast<double>(hits) / accesses;
}

TEST(S3Fifo, KeepsThePopularWhereLruIsSweptByWhatIsSeenOnce) {
  const double lru = hit_rate_with_one_hit_wonders("lru");
  const double s3fifo = hit_rate_with_one_hit_wonders("s3fifo");
  EXPECT_GT(s3fifo, lru + 0.1);
}

TEST(S3Fifo, AnEntryHitTwiceOutlivesNewerOnes) {
  const auto policy = make_eviction_policy("s3fifo");
  for (PolicySlot slot = 0; slot < 20; ++slot) policy->on_insert(slot, item_of(slot));
  policy->on_hit(0);
  policy->on_hit(0);
  policy->on_hit(1);  // once is not enough to leave the small queue
  EXPECT_EQ(evict(*policy), 1u);
  EXPECT_EQ(evict(*policy), 2u);
}

TEST(S3Fifo, AGhostThatComesBackIsKeptLonger) {
  const auto policy = make_eviction_policy("s3fifo");
  for (PolicySlot slot = 0; slot < 20; ++slot) policy->on_insert(slot, item_of(slot));
  EXPECT_EQ(evict(*policy), 0u);
  policy->on_insert(0, item_of(0));   // the same key again: to the main queue
  policy->on_insert(20, item_of(0));  // a ghost is met once
  const auto order = evict_all(*policy);
  ASSERT_EQ(order.size(), 21u);
  EXPECT_EQ(order[19], 20u);
  EXPECT_EQ(order[20], 0u);
}

// Encode seconds saved on a trace whose costs do not follow the sizes.
double cost_saved(std::string_view policy) {
  TraceCache cache(policy, 2000);
  std::mt19937 random(43);
  double saved = 0;
  for (int i = 0; i < 60000; ++i) {
    const auto key = static_cast<std::uint64_t>(std::exp((random() % 1000) / 1000.0 * 7.0));
    const std::uint64_t bytes = 1 + key * 7919 % 60;
    const std::uint64_t cost_us = 1 + key * 104729 % 10000;
    if (cache.access(key, bytes, cost_us)) saved += static_cast<double>(cost_us);
  }
  return saved;
}

TEST(Gdsf, SavesMoreEncodeTimeThanLruOnUnevenCosts) {
  EXPECT_GT(cost_saved("gdsf"), 1.05 * cost_saved("lru"));
}

TEST(Gdsf, WhatSavesLeastPerByteGoesFirst) {
  const auto policy = make_eviction_policy("gdsf");
  policy->on_insert(0, item_of(0, 1000, 9000));
  policy->on_insert(1, item_of(1, 1000, 1000));
  policy->on_insert(2, item_of(2, 9000, 45000));
  policy->on_insert(3, item_of(3, 1000, 1000));
  EXPECT_EQ(evict_all(*policy), (std::vector<PolicySlot>{1, 3, 2, 0}));
}

// Entries worth 1 a byte come and go, each of which ages what stays by 1.
void let_pass(EvictionPolicy& policy, PolicySlot first, int turns) {
  for (int i = 0; i < turns; ++i) {
    const PolicySlot slot = first + static_cast<PolicySlot>(i);
    policy.on_insert(slot, item_of(slot, 100, 100));
    evict(policy);
  }
}

TEST(Gdsf, AUseAfterAWhileCountsAndABurstOfHitsIsOneUse) {
  const auto policy = make_eviction_policy("gdsf");
  policy->on_insert(0, item_of(0, 100, 1000));  // worth 10 a byte
  policy->on_insert(1, item_of(1, 100, 1000));
  let_pass(*policy, 2, 8);
  policy->on_hit(0);  // most of its worth was lived up: a use
  for (int i = 0; i < 100; ++i) policy->on_hit(1);
  let_pass(*policy, 10, 8);
  policy->on_hit(0);
  EXPECT_EQ(evict_all(*policy), (std::vector<PolicySlot>{1, 0}));
}

TEST(Gdsf, WhatIsNoLongerUsedAgesAway) {
  const auto policy = make_eviction_policy("gdsf");
  policy->on_insert(0, item_of(0, 100, 10000));  // worth 100 a byte, and never used again
  PolicySlot slot = 1;
  bool gone = false;
  for (int i = 0; i < 10000 && !gone; ++i, ++slot) {
    policy->on_insert(slot, item_of(slot, 100, 100));
    policy->on_hit(slot);
    gone = i > 10 && evict(*policy) == 0u;
  }
  EXPECT_TRUE(gone);
}

TEST(EvictionPolicies, AnUnknownNameIsAnErrorThatListsTheKnownOnes) {
  try {
    make_eviction_policy("fifo");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    const std::string what = error.what();
    for (const auto name : eviction_policies()) {
      EXPECT_NE(what.find(name), std::string::npos) << what;
    }
  }
}

}  // namespace
}  // namespace vitrove
