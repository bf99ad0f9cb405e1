#include "vitrove/half.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// What a bit pattern of a small float format means, worked out with ldexp and nothing else.
double meaning(unsigned bits, int exponent_width, int fraction_width) {
  const int exponent = static_cast<int>(bits >> fraction_width) & ((1 << exponent_width) - 1);
  const int fraction = static_cast<int>(bits) & ((1 << fraction_width) - 1);
  const int bias = (1 << (exponent_width - 1)) - 1;
  if (exponent == (1 << exponent_width) - 1) {
    return fraction == 0 ? std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return std::ldexp(fraction, 1 - bias - fraction_width);
  return std::ldexp(fraction + (1 << fraction_width), exponent - bias - fraction_width);
}

// A table of all positive values, in which the nearest is looked for.
class Format {
 public:
  Format(int exponent_width, int fraction_width) {
    const unsigned infinite = ((1U << exponent_width) - 1) << fraction_width;
    for (unsigned bits = 0; bits < infinite; ++bits) {
      values_.push_back(meaning(bits, exponent_width, fraction_width));
    }
    // Where the next value would be if there were one: from half-way on, it is infinity.
    values_.push_back(2 * values_.back() - values_[values_.size() - 2]);
  }

  std::uint16_t nearest(float value) const {
    const unsigned sign = std::signbit(value) ? 0x8000 : 0;
    const double magnitude = std::fabs(static_cast<double>(value));
    const auto above = std::lower_bound(values_.begin(), values_.end(), magnitude);
    if (above == values_.end()) return static_cast<std::uint16_t>(sign | (values_.size() - 1));
    auto index = static_cast<unsigned>(above - values_.begin());
    if (*above != magnitude) {
      const double to_above = *above - magnitude;
      const double to_below = magnitude - values_[index - 1];
      if (to_below < to_above || (to_below == to_above && index % 2 == 1)) --index;
    }
    return static_cast<std::uint16_t>(sign | index);
  }

 private:
  std::vector<double> values_;
};

std::vector<float> interesting_floats() {
  std::vector<float> floats{0.0F, -0.0F, infinity, -infinity, 1.0F, -1.0F};
  // Round every boundary of both formats.
  for (unsigned half = 0; half < 0x7f80; ++half) {
    const std::uint32_t bfloat_bits = half << 16;
    for (std::uint32_t near : {0x0U, 0x1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      floats.push_back(std::bit_cast<float>(bfloat_bits + near));
    }
  }
  for (unsigned half = 0; half < 0x7bff; ++half) {
    const double middle = (meaning(half, 5, 10) + meaning(half + 1, 5, 10)) / 2;
    const auto exact = static_cast<float>(middle);
    floats.insert(floats.end(),
                  {exact, -exact, std::nextafter(exact, 0.0F), std::nextafter(exact, infinity)});
  }
  floats.insert(floats.end(), {65504.0F, 65519.996F, 65520.0F, 65536.0F, 1e30F});
  std::mt19937 random(7);
  for (int i = 0; i < 100'000; ++i) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isnan(value)) floats.push_back(value);
  }
  return floats;
}

using ToHalf = void (*)(std::span<const float>, std::span<std::uint16_t>);
using FromHalf = void (*)(std::span<const std::uint16_t>, std::span<float>);

void expect_nearest(const Format& format, ToHalf convert) {
  const std::vector<float> floats = interesting_floats();
  std::vector<std::uint16_t> halves(floats.size());
  convert(floats, halves);
  int wrong = 0;
  for (std::size_t i = 0; i < floats.size(); ++i) {
    if (halves[i] != format.nearest(floats[i]) && ++wrong < 10) {
      ADD_FAILURE() << floats[i] << " became " << halves[i] << " and not "
                    << format.nearest(floats[i]);
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Float16, RoundsToTheNearestAndTiesToEven) {
  expect_nearest(Format(5, 10), float32_to_float16);
}

TEST(BFloat16, RoundsToTheNearestAndTiesToEven) {
  expect_nearest(Format(8, 7), float32_to_bfloat16);
}

void expect_exact_widening(int exponent_width, int fraction_width, FromHalf widen, ToHalf narrow) {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  std::vector<float> floats(halves.size());
  widen(halves, floats);
  std::vector<std::uint16_t> back(halves.size());
  narrow(floats, back);
  for (unsigned i = 0; i < 65536; ++i) {
    const double value = meaning(i & 0x7fff, exponent_width, fraction_width);
    EXPECT_EQ(std::signbit(floats[i]), i >= 0x8000) << i;
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(floats[i])) << i;
      EXPECT_EQ(back[i], i | (1U << (fraction_width - 1))) << i;  // made quiet, payload kept
    } else {
      EXPECT_EQ(std::fabs(floats[i]), value) << i;
      EXPECT_EQ(back[i], i);
    }
  }
}

TEST(Float16, EveryValueWidensExactlyAndComesBack) {
  expect_exact_widening(5, 10, float16_to_float32, float32_to_float16);
}

TEST(BFloat16, EveryValueWidensExactlyAndComesBack) {
  expect_exact_widening(8, 7, bfloat16_to_float32, float32_to_bfloat16);
}

TEST(Half, NaNStaysNaNHoweverSmallItsPayload) {
  for (std::uint32_t bits : {0x7f800001U, 0xff800001U, 0x7fc00000U, 0x7fffffffU, 0xffbfffffU}) {
    const std::vector<float> nan(9, std::bit_cast<float>(bits));
    std::vector<std::uint16_t> half(9);
    float32_to_float16(nan, half);
    for (const auto element : half) EXPECT_GT(element & 0x7fff, 0x7c00) << std::hex << bits;
    float32_to_bfloat16(nan, half);
    for (const auto element : half) EXPECT_GT(element & 0x7fff, 0x7f80) << std::hex << bits;
  }
}

// Whole groups of eight go through instructions of their own where the CPU has them.
TEST(Half, AnElementConvertsAlikeAloneAndInACrowd) {
  std::mt19937 random(11);
  std::vector<float> floats(100'003);
  for (float& value : floats) value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  for (std::size_t i = 0; i < floats.size(); i += 3) floats[i] = std::fmod(floats[i], 7.0F);
  for (auto [narrow, widen] : {std::pair<ToHalf, FromHalf>{float32_to_float16, float16_to_float32},
                               {float32_to_bfloat16, bfloat16_to_float32}}) {
    std::vector<std::uint16_t> halves(floats.size());
    std::vector<float> back(floats.size());
    narrow(floats, halves);
    widen(halves, back);
    for (std::size_t i = 0; i < floats.size(); ++i) {
      std::uint16_t half = 0;
      float wide = 0;
      narrow(std::span(floats).subspan(i, 1), std::span(&half, 1));
      widen(std::span(halves).subspan(i, 1), std::span(&wide, 1));
      ASSERT_EQ(half, halves[i]) << floats[i];
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide), std::bit_cast<std::uint32_t>(back[i]));
    }
  }
}

TEST(Rows, HaveTheBytesOfTheirDTypeAtAnyAlignment) {
  const std::vector<float> floats{1.0F, -2.0F, 0.333F, 65504.0F, 1e-7F, 0.0F, -0.0F, 3.0F, 4.5F};
  for (auto dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    const std::size_t bytes = floats.size() * element_size(dtype);
    std::vector<std::byte> aligned(bytes);
    std::vector<std::byte> shifted(bytes + 1);
    float32_to_rows(floats, dtype, aligned);
    const auto odd = std::span(shifted).subspan(1);
    float32_to_rows(floats, dtype, odd);
    EXPECT_TRUE(std::ranges::equal(aligned, odd));

    std::vector<float> back(floats.size());
    std::vector<float> back_from_odd(floats.size());
    rows_to_float32(aligned, dtype, back);
    rows_to_float32(odd, dtype, back_from_odd);
    EXPECT_EQ(back, back_from_odd);
    EXPECT_EQ(back[0], 1.0F);
    EXPECT_EQ(back[1], -2.0F);
    EXPECT_EQ(back[8], 4.5F);
    EXPECT_NEAR(back[2], 0.333F, dtype == DType::float32 ? 0 : 0.002);
  }
}

TEST(Rows, OfOnePointZeroAreTheKnownBytes) {
  const float one = 1.0F;
  std::array<std::byte, 2> bytes{};
  float32_to_rows(std::span(&one, 1), DType::float16, bytes);
  EXPECT_EQ(bytes, (std::array{std::byte{0x00}, std::byte{0x3c}}));
  float32_to_rows(std::span(&one, 1), DType::bfloat16, bytes);
  EXPECT_EQ(bytes, (std::array{std::byte{0x80}, std::byte{0x3f}}));
}

TEST(Rows, OfAnotherSizeAreRefused) {
  std::vector<float> floats(4);
  std::vector<std::byte> bytes(9);
  EXPECT_THROW(float32_to_rows(floats, DType::float16, bytes), Error);
  EXPECT_THROW(rows_to_float32(bytes, DType::float16, floats), Error);
  std::vector<std::uint16_t> halves(3);
  EXPECT_THROW(float32_to_float16(floats, halves), Error);
  EXPECT_THROW(bfloat16_to_float32(std::vector<std::uint16_t>(5), floats), Error);
}

TEST(Rows, MayBeNone) {
  EXPECT_NO_THROW(float32_to_rows({}, DType::float16, {}));
  EXPECT_NO_THROW(rows_to_float32({}, DType::float32, {}));
}

}  // namespace
}  // namespace vitrove
