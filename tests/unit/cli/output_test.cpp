// Names as people see them.
#include "cli/output.h"

#include <gtest/gtest.h>

namespace vitrove::cli {
namespace {

TEST(ShownNames, AreWhatTheyAre) {
  EXPECT_EQ(shown("pictures/été.png"), "pictures/été.png");
  EXPECT_EQ(shown(""), "");
}

TEST(ShownNames, CannotSteerATerminal) { EXPECT_EQ(shown("a\033[2Jb\nc\td\x7f"), "a?[2Jb?c?d?"); }

TEST(ShownNames, LongOnesKeepTheirEnd) {
  EXPECT_EQ(shown("0123456789", 4), "...6789");
  EXPECT_EQ(shown("0123", 4), "0123");
}

TEST(ShownNames, NoCharacterIsCutInHalf) { EXPECT_EQ(shown("aéa", 2), "...a"); }

}  // namespace
}  // namespace vitrove::cli
