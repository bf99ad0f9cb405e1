// Least and most shares of modalities, with every policy (design section 6).
#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "vitrove/error.h"
#include "vitrove/eviction_policy.h"

namespace vitrove {
namespace {

constexpr std::array modalities = {Modality::image, Modality::video, Modality::audio};

bool take_any(PolicySlot) { return true; }

// What is held, and what the rules say about it.
class Model {
 public:
  Model(std::vector<ModalityShare> shares, std::uint64_t pool_bytes) {
    for (const Modality modality : modalities) parts_[modality].most = ~std::uint64_t{0};
    for (const ModalityShare& share : shares) {
      Part& part = parts_[share.modality];
      part.least = static_cast<std::uint64_t>(share.least * static_cast<double>(pool_bytes));
      if (share.most < 1) {
        part.most = static_cast<std::uint64_t>(share.most * static_cast<double>(pool_bytes));
      }
    }
  }

  void insert(PolicySlot slot, const PolicyItem& item) {
    held_[slot] = item;
    parts_[item.modality].bytes += item.bytes;
  }
  void erase(PolicySlot slot) {
    parts_[held_.at(slot).modality].bytes -= held_.at(slot).bytes;
    held_.erase(slot);
    pinned.erase(slot);
  }
  bool holds(PolicySlot slot) const { return held_.contains(slot); }
  const std::map<PolicySlot, PolicyItem>& held() const { return held_; }
  std::uint64_t bytes(Modality modality) const { return parts_.at(modality).bytes; }
  std::uint64_t least(Modality modality) const { return parts_.at(modality).least; }

  bool may_go(PolicySlot slot, const RoomWanted& wanted) const {
    const Modality modality = held_.at(slot).modality;
    if (wanted.modality == modality) return true;
    const Part& part = parts_.at(modality);
    if (part.bytes <= part.least) return false;
    return !wanted.modality ||
           parts_.at(*wanted.modality).bytes + wanted.bytes <= parts_.at(*wanted.modality).most;
  }
  std::uint64_t excess(Modality modality) const {
    const Part& part = parts_.at(modality);
    return part.bytes > part.most ? part.bytes - part.most : 0;
  }

  std::set<PolicySlot> pinned;

 private:
  struct Part {
    std::uint64_t least = 0, most = 0, bytes = 0;
  };
  std::map<Modality, Part> parts_;
  std::map<PolicySlot, PolicyItem> held_;
};

class EveryPolicyWithShares : public testing::TestWithParam<std::string_view> {};

INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicyWithShares, testing::ValuesIn(eviction_policies()),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(EveryPolicyWithShares, KeepsTheRulesWhateverHappens) {
  std::mt19937 random(71);
  constexpr std::uint64_t pool = 20000;
  for (int game = 0; game < 20; ++game) {
    const auto part = [&] { return static_cast<double>(random() % 30) / 100; };
    std::vector<ModalityShare> shares;
    for (const Modality modality : modalities) {
      const double least = part();
      if (random() % 4 != 0) shares.push_back({modality, least, least + part()});
    }
    if (shares.empty()) shares.push_back({Modality::image, 0.5, 0.6});
    const auto policy = make_eviction_policy(GetParam(), shares, pool);
    Model model(shares, pool);
    for (int step = 0; step < 3000; ++step) {
      const PolicySlot slot = random() % 300;
      const auto roll = random() % 10;
      if (roll < 4 && !model.holds(slot)) {
        const PolicyItem item{random(), 1 + random() % 200, random() % 5000,
                              modalities[random() % 3]};
        policy->on_insert(slot, item);
        model.insert(slot, item);
      } else if (roll < 6 && model.holds(slot)) {
        policy->on_hit(slot);
      } else if (roll < 7 && model.holds(slot)) {
        policy->on_erase(slot);
        model.erase(slot);
      } else if (roll < 8 && model.holds(slot)) {
        model.pinned.insert(slot);
      } else if (roll == 9) {
        model.pinned.clear();
      } else {
        RoomWanted wanted{std::nullopt, random() % 400};
        if (random() % 8 != 0) wanted.modality = modalities[random() % 3];
        std::uint64_t most_excess = 0;
        bool any = false;
        for (const auto& [held, item] : model.held()) {
          ASSERT_EQ(policy->may_go_for(held, wanted), model.may_go(held, wanted));
          if (model.pinned.contains(held) || !model.may_go(held, wanted)) continue;
          any = true;
          most_excess = std::max(most_excess, model.excess(item.modality));
        }
        const auto victim = policy->next_victim_for(wanted, [&](PolicySlot offered) {
          EXPECT_TRUE(model.holds(offered));
          return !model.pinned.contains(offered);
        });
        ASSERT_EQ(victim.has_value(), any);
        if (!victim) continue;
        ASSERT_TRUE(model.may_go(*victim, wanted));
        ASSERT_EQ(model.excess(model.held().at(*victim).modality), most_excess);
        policy->on_erase(*victim);
        model.erase(*victim);
      }
    }
  }
}

TEST_P(EveryPolicyWithShares, AScanOfOneModalityLeavesTheOthersTheirLeast) {
  constexpr std::uint64_t pool = 1000;
  const std::vector<ModalityShare> shares = {{Modality::audio, 0.2, 1}, {Modality::image, 0.3, 1}};
  const auto policy = make_eviction_policy(GetParam(), shares, pool);
  Model model(shares, pool);
  std::vector<PolicySlot> unused;
  for (PolicySlot slot = 2000; slot > 0; --slot) unused.push_back(slot - 1);
  std::uint64_t used = 0;
  const auto ask = [&](Modality modality) {
    while (used + 10 > pool) {
      const auto victim = policy->next_victim_for({modality, 10}, take_any);
      ASSERT_TRUE(victim);
      policy->on_erase(*victim);
      model.erase(*victim);
      unused.push_back(*victim);
      used -= 10;
    }
    const PolicySlot slot = unused.back();
    unused.pop_back();
    const PolicyItem item{slot, 10, 1000, modality};
    policy->on_insert(slot, item);
    model.insert(slot, item);
    used += 10;
  };
  for (int i = 0; i < 100; ++i) ask(i % 2 == 0 ? Modality::audio : Modality::image);
  for (int i = 0; i < 1000; ++i) ask(Modality::video);
  EXPECT_EQ(model.bytes(Modality::audio), 200u);
  EXPECT_EQ(model.bytes(Modality::image), 300u);
  EXPECT_EQ(model.bytes(Modality::video), 500u);
}

TEST_P(EveryPolicyWithShares, AboveItsMostAModalityEvictsItsOwn) {
  const std::vector<ModalityShare> shares = {{Modality::video, 0, 0.5}};
  const auto policy = make_eviction_policy(GetParam(), shares, 100);
  for (PolicySlot slot = 0; slot < 10; ++slot) {
    policy->on_insert(slot, {slot, 10, 1000, slot < 5 ? Modality::image : Modality::video});
  }
  EXPECT_FALSE(policy->may_go_for(0, {Modality::video, 10}));
  for (int i = 0; i < 5; ++i) {
    const auto victim = policy->next_victim_for({Modality::video, 60}, take_any);
    ASSERT_TRUE(victim);
    EXPECT_GE(*victim, 5u);
    policy->on_erase(*victim);
  }
  // More than it may ever have takes from nobody.
  EXPECT_EQ(policy->next_victim_for({Modality::video, 60}, take_any), std::nullopt);
  EXPECT_TRUE(policy->next_victim_for({Modality::video, 50}, take_any));
}

// Nothing is promised that next_victim_for() does not keep.
TEST_P(EveryPolicyWithShares, TellsBeforehandHowMuchWillGo) {
  const std::vector<ModalityShare> shares = {{Modality::audio, 0.3, 1}, {Modality::video, 0, 0.5}};
  const auto make = [&] {
    auto policy = make_eviction_policy(GetParam(), shares, 100);
    for (PolicySlot slot = 0; slot < 10; ++slot) {
      policy->on_insert(slot, {slot, 8, 1000, slot < 5 ? Modality::audio : Modality::image});
    }
    return policy;
  };
  EXPECT_EQ(make()->bytes_that_go_for({Modality::image, 1}), 40U + 10U);
  EXPECT_EQ(make()->bytes_that_go_for({Modality::audio, 1}), 40U + 40U);
  EXPECT_EQ(make()->bytes_that_go_for({Modality::video, 50}), 10U + 40U);
  EXPECT_EQ(make()->bytes_that_go_for({Modality::video, 51}), 0U);
  EXPECT_EQ(make()->bytes_that_go_for({std::nullopt, 51}), 10U + 40U);
  EXPECT_EQ(make()->that_stay(std::array<PolicySlot, 4>{1, 6, 2, 7}, {Modality::video, 1}),
            std::vector<PolicySlot>{2});
  for (const Modality modality : modalities) {
    const auto policy = make();
    const RoomWanted wanted{modality, 20};
    const std::uint64_t promised = policy->bytes_that_go_for(wanted);
    std::uint64_t gone = 0;
    while (const auto victim = policy->next_victim_for(wanted, take_any)) {
      policy->on_erase(*victim);
      gone += 8;
    }
    EXPECT_GE(gone, promised);
    EXPECT_LE(gone, promised + 8);
  }
}

// Costs and sizes of no two entries make the same priority.
TEST(ModalityShares, ThatBindNobodyLeaveTheOrderOfLruAndGdsfAsItIs) {
  for (const std::string_view name : {"lru", "gdsf"}) {
    std::mt19937 random(73);
    const auto plain = make_eviction_policy(name);
    const std::vector<ModalityShare> shares = {{Modality::image, 0, 1}};
    const auto shared = make_eviction_policy(name, shares, 1000);
    std::set<PolicySlot> held;
    for (int step = 0; step < 30000; ++step) {
      const PolicySlot slot = random() % 500;
      if (held.contains(slot)) {
        plain->on_hit(slot);
        shared->on_hit(slot);
        continue;
      }
      if (held.size() >= 300) {
        const auto victim = plain->next_victim(take_any);
        ASSERT_EQ(shared->next_victim(take_any), victim) << name << " at step " << step;
        plain->on_erase(*victim);
        shared->on_erase(*victim);
        held.erase(*victim);
      }
      const PolicyItem item{slot, 1 + random() % 100000, 1 + random() % 1000000,
                            modalities[random() % 3]};
      plain->on_insert(slot, item);
      shared->on_insert(slot, item);
      held.insert(slot);
    }
  }
}

TEST(ModalityShares, AreReadFromText) {
  const ModalityShare both = parse_modality_share("image=0.2:0.8");
  EXPECT_EQ(both.modality, Modality::image);
  EXPECT_DOUBLE_EQ(both.least, 0.2);
  EXPECT_DOUBLE_EQ(both.most, 0.8);
  const ModalityShare least = parse_modality_share("audio=0.5:");
  EXPECT_DOUBLE_EQ(least.least, 0.5);
  EXPECT_DOUBLE_EQ(least.most, 1);
  const ModalityShare most = parse_modality_share("video=:0.25");
  EXPECT_DOUBLE_EQ(most.least, 0);
  EXPECT_DOUBLE_EQ(most.most, 0.25);
}

TEST(ModalityShares, ThatMakeNoSenseAreRefused) {
  for (const char* text :
       {"", "image", "image=", "image=0.2", "text=0:1", "image=a:b", "image=0.2:0.8x",
        "image=-0.1:1", "image=0.9:0.8", "image=0:1.1", "image=nan:1", "image=0:inf", "=0:1"}) {
    EXPECT_THROW(parse_modality_share(text), Error) << text;
  }
  const auto refused = [](std::vector<ModalityShare> shares) {
    try {
      make_eviction_policy("lru", shares, 1000);
    } catch (const Error& error) {
      return error.code() == ErrorCode::invalid_argument;
    }
    return false;
  };
  EXPECT_TRUE(refused({{Modality::image, 0, 1}, {Modality::image, 0, 1}}));
  EXPECT_TRUE(refused({{Modality::image, 0.6, 1}, {Modality::video, 0.6, 1}}));
  EXPECT_FALSE(refused({{Modality::image, 0.7, 1}, {Modality::video, 0.3, 1}}));
}

}  // namespace
}  // namespace vitrove
