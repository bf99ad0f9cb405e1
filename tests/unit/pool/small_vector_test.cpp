#include "vitrove/small_vector.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace vitrove {
namespace {

using Small = SmallVector<int, 2>;

std::vector<int> values(const Small& small) { return {small.begin(), small.end()}; }

TEST(SmallVector, HoldsWhatAVectorWouldInlineAndOnTheHeap) {
  std::mt19937 random(1);
  Small small;
  std::vector<int> model;
  for (int step = 0; step < 2000; ++step) {
    const auto roll = random() % 10;
    if (roll < 5) {
      small.push_back(step);
      model.push_back(step);
    } else if (roll < 9 && !model.empty()) {
      small.pop_back();
      model.pop_back();
    } else if (roll == 9 && random() % 5 == 0) {
      small.clear();
      model.clear();
    }
    ASSERT_EQ(values(small), model);
    ASSERT_EQ(small.size(), model.size());
    ASSERT_EQ(small.empty(), model.empty());
    if (!model.empty()) {
      ASSERT_EQ(small.front(), model.front());
      ASSERT_EQ(small.back(), model.back());
      ASSERT_EQ(small[model.size() / 2], model[model.size() / 2]);
    }
  }
}

TEST(SmallVector, AMovedFromOneIsEmptyWhereverItsValuesWere) {
  for (const Small& original : {Small{}, Small{1}, Small{1, 2}, Small{1, 2, 3}}) {
    Small source = original;
    Small target = std::move(source);
    EXPECT_EQ(target, original);
    EXPECT_TRUE(source.empty());
    for (Small other : {Small{}, Small{9}, Small{7, 8, 9}}) {
      other = std::move(target);
      EXPECT_EQ(other, original);
      EXPECT_TRUE(target.empty());
      target = other;
      EXPECT_EQ(target, original);
    }
  }
}

TEST(SmallVector, CanTakeOneOfItsOwnValues) {
  Small small{1, 2};
  small.push_back(small[0]);
  small.push_back(small[2]);
  EXPECT_EQ(small, (Small{1, 2, 1, 1}));
  EXPECT_FALSE(small == (Small{1, 2, 1}));
}

}  // namespace
}  // namespace vitrove
