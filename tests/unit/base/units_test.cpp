#include "vitrove/units.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vitrove/error.h"

namespace vitrove {
namespace {

using std::chrono::microseconds;
using namespace std::chrono_literals;

template <typename Parse>
void expect_refused(Parse parse, std::string_view text) {
  try {
    parse(text);
    ADD_FAILURE() << "accepted: '" << text << "'";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), testing::HasSubstr(std::string(text.substr(0, 40))));
  }
}

TEST(ParseBytes, KnowsBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("0"), 0U);
  EXPECT_EQ(parse_bytes("4096"), 4096U);
  EXPECT_EQ(parse_bytes("7B"), 7U);
  EXPECT_EQ(parse_bytes("64KiB"), 65536U);
  EXPECT_EQ(parse_bytes("3MiB"), 3145728U);
  EXPECT_EQ(parse_bytes("4GiB"), 4294967296U);
  EXPECT_EQ(parse_bytes("1TiB"), 1099511627776U);
  EXPECT_EQ(parse_bytes("2kB"), 2000U);
  EXPECT_EQ(parse_bytes("2KB"), 2000U);
  EXPECT_EQ(parse_bytes("2MB"), 2000000U);
  EXPECT_EQ(parse_bytes("2GB"), 2000000000U);
  EXPECT_EQ(parse_bytes("2TB"), 2000000000000U);
}

TEST(ParseBytes, TakesFractionsAndOneSpace) {
  EXPECT_EQ(parse_bytes("1.5GiB"), 1610612736U);
  EXPECT_EQ(parse_bytes("0.25 KiB"), 256U);
  EXPECT_EQ(parse_bytes("0.3MB"), 300000U);
  EXPECT_EQ(parse_bytes("4.000000000000000000000000GiB"), 4294967296U);
}

TEST(ParseBytes, GoesToTheLastByteThatFits) {
  EXPECT_EQ(parse_bytes("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_bytes("16777215TiB"), 18446742974197923840U);
}

TEST(ParseBytes, RefusesEverythingElse) {
  for (std::string_view text : {"",
                                " ",
                                "-1",
                                "+1",
                                "-4GiB",
                                "GiB",
                                ".5GiB",
                                "1.GiB",
                                "1..5GiB",
                                "1,5GiB",
                                "4 ",
                                " 4",
                                "4  GiB",
                                "4gib",
                                "4G",
                                "4GiBs",
                                "4GiB/s",
                                "0x10",
                                "1e9",
                                "nan",
                                "inf",
                                "4GiB 4",
                                "18446744073709551616",
                                "16777216TiB",
                                "99999999999999999999999GiB",
                                "18446744073709.6MB"}) {
    expect_refused(parse_bytes, text);
  }
}

TEST(ParseBytes, ShowsOnlyTheStartOfAnEndlessText) {
  try {
    parse_bytes(std::string(1'000'000, '9'));
    FAIL();
  } catch (const Error& error) {
    EXPECT_LT(std::string_view(error.what()).size(), 200U);
  }
}

TEST(ParseDuration, KnowsItsUnits) {
  EXPECT_EQ(parse_duration("0"), 0us);
  EXPECT_EQ(parse_duration("2"), 2s);
  EXPECT_EQ(parse_duration("7us"), 7us);
  EXPECT_EQ(parse_duration("200ms"), 200ms);
  EXPECT_EQ(parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(parse_duration("0.5"), 500ms);
  EXPECT_EQ(parse_duration("3m"), 3min);
  EXPECT_EQ(parse_duration("3 min"), 3min);
  EXPECT_EQ(parse_duration("2h"), 2h);
  EXPECT_EQ(parse_duration("1d"), 24h);
}

TEST(ParseDuration, RefusesEverythingElse) {
  for (std::string_view text :
       {"", "-1s", "ms", "1.s", "1sec", "1s2", "1 s ", "9223372036854775808us", "300000000y",
        "106751992d", "18446744073709551615s"}) {
    expect_refused(parse_duration, text);
  }
}

TEST(ParseRate, TakesBytesWithOrWithoutPerSecond) {
  EXPECT_EQ(parse_rate("200MB/s"), 200000000U);
  EXPECT_EQ(parse_rate("1.5 GiB/s"), 1610612736U);
  EXPECT_EQ(parse_rate("200MB"), 200000000U);
  EXPECT_EQ(parse_rate("5"), 5U);
}

TEST(ParseRate, RefusesEverythingElse) {
  for (std::string_view text : {"", "/s", "200MB/", "200MB/ms", "200MB/s/s", "-1/s"}) {
    expect_refused(parse_rate, text);
  }
}

TEST(FormatBytes, UsesTheLargestUnitThatFits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(4294967296), "4.0 GiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<std::uint64_t>::max()), "16777216.0 TiB");
}

TEST(FormatBytes, NeverShowsOneThousandAndTwentyFourOfAUnit) {
  EXPECT_EQ(format_bytes(1024 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(1024 * 1024 - 60), "1023.9 KiB");
}

TEST(FormatDuration, UsesTheLargestUnitThatFits) {
  EXPECT_EQ(format_duration(0us), "0 us");
  EXPECT_EQ(format_duration(850us), "850 us");
  EXPECT_EQ(format_duration(1200us), "1.2 ms");
  EXPECT_EQ(format_duration(1500ms), "1.5 s");
  EXPECT_EQ(format_duration(90s), "1.5 min");
  EXPECT_EQ(format_duration(36h), "36.0 h");
  EXPECT_EQ(format_duration(-1500ms), "-1.5 s");
  EXPECT_EQ(format_duration(999'960us), "1.0 s");
}

TEST(Format, WhatIsShownCanBeReadBack) {
  for (std::uint64_t bytes = 1; bytes < (std::uint64_t{1} << 50); bytes = bytes * 7 / 2 + 1) {
    const auto back = static_cast<double>(parse_bytes(format_bytes(bytes)));
    EXPECT_NEAR(back / static_cast<double>(bytes), 1, 0.05) << bytes;
  }
  for (std::int64_t us = 1; us < std::int64_t{1} << 50; us = us * 7 / 2 + 1) {
    const auto back =
        static_cast<double>(parse_duration(format_duration(microseconds(us))).count());
    EXPECT_NEAR(back / static_cast<double>(us), 1, 0.05) << us;
  }
}

}  // namespace
}  // namespace vitrove
