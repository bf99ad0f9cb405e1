// Values of options: what is checked of numbers, and what is told of units.
#include "cli/options.h"

#include <chrono>
#include <string>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vitrove/error.h"

namespace vitrove::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(NotNegative, KnowsANumberBelowZeroHoweverItIsWritten) {
  for (const char* text : {"-1", " -1", "\t-1", "-1.5", "-0x1", "-010", "-99999999999999999999"})
    EXPECT_THAT(not_negative(text), HasSubstr("is less than 0")) << text;
}

TEST(NotNegative, LeavesTheRestToTheParser) {
  for (const char* text : {"0", "-0", " -0", "1", " 7", "x", "-x", "- 1", ""})
    EXPECT_EQ(not_negative(text), "") << text;
}

// What the check is for: the parser takes the largest number there is for a number below zero.
TEST(NotNegative, StandsBeforeAParserThatKnowsNone) {
  std::uint64_t number = 0;
  CLI::App app;
  app.add_option("--epoch", number)->check(not_negative);
  for (const char* text : {"-1", " -1", "-0x1"})
    EXPECT_THROW(app.parse(std::vector<std::string>{std::string("--epoch=") + text}),
                 CLI::ValidationError)
        << text;
  app.parse(std::vector<std::string>{"--epoch=-0"});
  EXPECT_EQ(number, 0U);
}

TEST(WordOrOption, IsTheOneThatIsGiven) {
  std::string value = "default";
  CLI::App app;
  const CLI::Option* option = app.add_option("--place", value);
  EXPECT_EQ(word_or_option("", *option, value), "default");
  EXPECT_EQ(word_or_option("word", *option, value), "word");
  app.parse("--place x");
  EXPECT_EQ(word_or_option("", *option, value), "x");
  EXPECT_EQ(word_or_option("x", *option, value), "x");
}

TEST(WordOrOption, RefusesTwoThatDifferAndShowsNoPassword) {
  std::string value;
  CLI::App app;
  const CLI::Option* option = app.add_option("--place", value);
  app.parse("--place redis://me:secret@host");
  try {
    word_or_option("redis://me:hidden@other", *option, value);
    FAIL() << "two places";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    const std::string says = error.what();
    EXPECT_THAT(says, HasSubstr("--place"));
    EXPECT_THAT(says, HasSubstr("@other"));
    EXPECT_THAT(says, HasSubstr("@host"));
    EXPECT_THAT(says, Not(HasSubstr("secret")));
    EXPECT_THAT(says, Not(HasSubstr("hidden")));
  }
}

TEST(UnitWords, TellWhatANumberWithoutAUnitIs) {
  std::chrono::microseconds time{};
  std::uint64_t bytes = 0;
  CLI::App app;
  app.add_flag("--json");
  EXPECT_EQ(unit_words(app), "");
  add_duration(app, "--time", time, "");
  EXPECT_THAT(unit_words(app), HasSubstr("without a unit it is seconds"));
  EXPECT_THAT(unit_words(app), Not(HasSubstr("BYTES")));
  add_bytes(app, "--size", bytes, "");
  EXPECT_THAT(unit_words(app), HasSubstr("BYTES: "));
  EXPECT_THAT(unit_words(app), Not(HasSubstr("BYTES/s")));
  add_rate(app, "--rate", bytes, "");
  EXPECT_THAT(unit_words(app), HasSubstr("BYTES/s: "));
}

}  // namespace
}  // namespace vitrove::cli
