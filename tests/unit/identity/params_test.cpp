#include "vitrove/params.h"

#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "vitrove/error.h"

namespace vitrove {
namespace {

std::string encoded(std::map<std::string, ParamValue> values) {
  return ResolvedParams{std::move(values)}.canonical();
}

using Reals = std::vector<double>;

// Field cases B18 and B21: no two of these may encode alike.
TEST(Params, DifferentSetsEncodeDifferently) {
  const std::vector<std::map<std::string, ParamValue>> different{
      {},
      {{"v", true}},
      {{"v", false}},
      {{"v", std::int64_t{1}}},
      {{"v", std::int64_t{0}}},
      {{"v", std::int64_t{-1}}},
      {{"v", 1.0}},
      {{"v", 0.0}},
      {{"v", std::string("1")}},
      {{"v", std::string("true")}},
      {{"v", std::string()}},
      {{"v", Reals{}}},
      {{"v", Reals{1}}},
      {{"v", Reals{1, 1}}},
      {{"v", Reals{1, 2}}},
      {{"v", Reals{2, 1}}},
      {{"w", true}},
      {{"", true}},
      {{"v", true}, {"w", true}},
      {{"v", true}, {"w", false}},
      // The same letters, cut elsewhere.
      {{"ab", std::string("c")}},
      {{"a", std::string("bc")}},
      {{"a", std::string("b")}, {"c", std::string("d")}},
      {{"a", std::string("bc")}, {"d", std::string()}},
      {{"a", std::string("b\0c", 3)}},
      {{"a", std::string("b")}},
      // The same numbers, cut elsewhere.
      {{"a", Reals{1, 2}}, {"b", Reals{3, 4, 5}}},
      {{"a", Reals{1, 2, 3}}, {"b", Reals{4, 5}}},
      // An integer and a real number of the same bits.
      {{"n", std::int64_t{0x3ff8000000000000}}},
      {{"n", 1.5}},
  };
  std::set<std::string> encodings;
  for (const auto& values : different) encodings.insert(encoded(values));
  EXPECT_EQ(encodings.size(), different.size());
}

TEST(Params, AreWrittenInTheOrderOfTheirNames) {
  ResolvedParams one;
  one.values["size"] = std::int64_t{224};
  one.values["crop"] = true;
  ResolvedParams other;
  other.values["crop"] = true;
  other.values["size"] = std::int64_t{224};
  EXPECT_EQ(one.canonical(), other.canonical());
}

// Field case B22.
TEST(Params, ADefaultAndTheSameValueGivenEncodeAlike) {
  const auto resolve = [](std::optional<std::int64_t> size, std::optional<double> scale) {
    return encoded({{"size", size.value_or(224)}, {"scale", scale.value_or(1.0 / 255)}});
  };
  EXPECT_EQ(resolve({}, {}), resolve(224, 1.0 / 255));
  EXPECT_NE(resolve({}, {}), resolve(225, {}));
  EXPECT_NE(resolve({}, {}), resolve({}, 1.0 / 256));
}

TEST(Params, ZeroHasNoSign) {
  EXPECT_EQ(encoded({{"v", 0.0}}), encoded({{"v", -0.0}}));
  EXPECT_EQ(encoded({{"v", Reals{1, 0.0}}}), encoded({{"v", Reals{1, -0.0}}}));
}

TEST(Params, NotANumberIsRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ParamValue& value : {ParamValue(nan), ParamValue(-nan), ParamValue(Reals{1, nan})}) {
    try {
      encoded({{"v", value}});
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  }
}

}  // namespace
}  // namespace vitrove
