#include "cli/suggestion.h"

#include <vector>

#include <gtest/gtest.h>

namespace vitrove::cli {
namespace {

const std::vector<std::string> names{"pool-size", "page-size", "port", "host", "json", "store"};

TEST(Nearest, IsTheNameWithTheFewestMistakes) {
  EXPECT_EQ(nearest("pol-size", names), "pool-size");
  EXPECT_EQ(nearest("paeg-size", names), "page-size") << "two that changed places are one";
  EXPECT_EQ(nearest("jsno", names), "json");
  EXPECT_EQ(nearest("prot", names), "port");
  EXPECT_EQ(nearest("stores", names), "store");
}

TEST(Nearest, IsNoneOfWhatIsFarFromAll) {
  EXPECT_EQ(nearest("colour", names), "");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest("x", names), "");
  EXPECT_EQ(nearest(std::string(100'000, 'p'), names), "");
  EXPECT_EQ(nearest("port", {}), "");
}

}  // namespace
}  // namespace vitrove::cli
