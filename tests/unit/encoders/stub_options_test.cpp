#include "encoders/stub/stub_options.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support.h"

namespace vitrove::test {
namespace {

using ::testing::HasSubstr;

TEST(StubOptions, NoOptionsMeanTheDefaults) {
  const StubOptions options = parse_stub_options("");
  EXPECT_EQ(options.dim, 64U);
  EXPECT_EQ(options.min_tokens, 16U);
  EXPECT_EQ(options.max_tokens, 16U);
  EXPECT_EQ(options.seed, 1U);
  EXPECT_EQ(options.dtype, DType::float32);
  EXPECT_EQ(options.delay.count(), 0);
  EXPECT_EQ(options.failure, StubFailure::none);
}

TEST(StubOptions, EveryOptionIsRead) {
  const StubOptions options = parse_stub_options(
      "dim=32,tokens=16-4096,seed=18446744073709551615,dtype=bfloat16,"
      "delay_ms=500,fail=short,fail_count=3");
  EXPECT_EQ(options.dim, 32U);
  EXPECT_EQ(options.min_tokens, 16U);
  EXPECT_EQ(options.max_tokens, 4096U);
  EXPECT_EQ(options.seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(options.dtype, DType::bfloat16);
  EXPECT_EQ(options.delay.count(), 500);
  EXPECT_EQ(options.failure, StubFailure::short_rows);
  EXPECT_EQ(options.fail_count, 3U);
}

TEST(StubOptions, FailFirstIsAnErrorOnce) {
  const StubOptions options = parse_stub_options("fail=first");
  EXPECT_EQ(options.failure, StubFailure::error);
  EXPECT_EQ(options.fail_count, 1U);
}

struct BadStub {
  const char* options;
  const char* message;  // a part of it
};

class BadStubTest : public ::testing::TestWithParam<BadStub> {};

TEST_P(BadStubTest, IsOneClearLineThatNamesTheOption) {
  const Failure failure = failure_of([&] { parse_stub_options(GetParam().options); });
  EXPECT_EQ(failure.code, ErrorCode::invalid_argument);
  EXPECT_THAT(failure.message, HasSubstr(GetParam().message));
  EXPECT_TRUE(is_one_line(failure.message));
}

INSTANTIATE_TEST_SUITE_P(
    StubOptions, BadStubTest,
    ::testing::Values(
        BadStub{"colour=red", "unknown option 'colour' (known: dim, tokens, seed"},
        BadStub{"dim", "'dim' is not NAME=VALUE"}, BadStub{"dim=", "option dim"},
        BadStub{"dim=0", "option dim"}, BadStub{"dim=-1", "option dim"},
        BadStub{"dim=64x", "option dim"}, BadStub{"dim=99999999999", "option dim"},
        BadStub{"dim= 64", "option dim"}, BadStub{"tokens=0", "option tokens"},
        BadStub{"tokens=8-4", "option tokens"}, BadStub{"tokens=4-", "option tokens"},
        BadStub{"tokens=-4", "option tokens"}, BadStub{"tokens=1-2-3", "option tokens"},
        BadStub{"seed=-1", "option seed"}, BadStub{"seed=1.5", "option seed"},
        BadStub{"dtype=fp16", "option dtype must be float32, float16 or bfloat16, not 'fp16'"},
        BadStub{"delay_ms=soon", "option delay_ms"}, BadStub{"delay_ms=99999999", "delay_ms"},
        BadStub{"fail=sometimes", "option fail must be error, nan, short or first"},
        BadStub{"fail_count=2", "option fail_count goes with"},
        BadStub{"fail=first,fail_count=2", "option fail_count goes with"},
        BadStub{"fail=nan,fail_count=0", "option fail_count"},
        BadStub{"dim=64,dim=64", "option dim is given twice"},
        BadStub{"dim=64,", "missing after the last comma"}, BadStub{",dim=64", "NAME=VALUE"},
        BadStub{"dim=1048576,tokens=16777216", "more than 8 GiB"}));

}  // namespace
}  // namespace vitrove::test
