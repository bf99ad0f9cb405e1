// Names as people see them.
#include "cli/output.h"

#include <cstdint>
#include <limits>

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

TEST(ExactBytes, HaveAUnitWhereThatLosesNothing) {
  EXPECT_EQ(exact_bytes(0), "0 B");
  EXPECT_EQ(exact_bytes(1000), "1000 B");
  EXPECT_EQ(exact_bytes(1536), "1.5 KiB");
  EXPECT_EQ(exact_bytes(786432), "768.0 KiB");
  EXPECT_EQ(exact_bytes(std::uint64_t{4} << 30), "4.0 GiB");
  EXPECT_EQ(exact_bytes(std::uint64_t{3} << 60), "3145728.0 TiB");
}

TEST(ExactBytes, AreBytesWhereAUnitWouldNameAnotherSize) {
  EXPECT_EQ(exact_bytes(786433), "786433 B");
  EXPECT_EQ(exact_bytes(1023 * 1024 + 1023), "1048575 B");
  EXPECT_EQ(exact_bytes(1'000'000), "1000000 B");
  EXPECT_EQ(exact_bytes(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615 B");
}

}  // namespace
}  // namespace vitrove::cli
