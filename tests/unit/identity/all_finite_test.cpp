#include <cstring>

#include <gtest/gtest.h>

#include "base/little_endian.h"
#include "vitrove/value_format.h"

namespace vitrove {
namespace {

struct Patterns {
  DType dtype;
  std::vector<std::uint32_t> finite;  // the edges: zeros, subnormals, the largest, all sign bits
  std::vector<std::uint32_t> odd;     // infinities, quiet and signalling NaN of both signs
};

const std::vector<Patterns>& all_patterns() {
  static const std::vector<Patterns> patterns{
      {DType::float32,
       {0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x3f800000, 0x7f7fffff, 0xff7fffff, 0x7f000000},
       {0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x7fffffff}},
      {DType::float16,
       {0, 0x8000, 1, 0x8001, 0x03ff, 0x3c00, 0x7bff, 0xfbff, 0x7800},
       {0x7c00, 0xfc00, 0x7e00, 0xfe00, 0x7c01, 0xfc01, 0x7fff}},
      {DType::bfloat16,
       {0, 0x8000, 1, 0x8001, 0x007f, 0x3f80, 0x7f7f, 0xff7f, 0x7f00},
       {0x7f80, 0xff80, 0x7fc0, 0xffc0, 0x7f81, 0xff81, 0x7fff}}};
  return patterns;
}

class Rows {
 public:
  // `shift` moves the first element off its natural alignment.
  Rows(const Patterns& patterns, std::size_t elements, std::size_t shift)
      : dtype_(patterns.dtype), shift_(shift), bytes_(shift + elements * element_size(dtype_)) {
    for (std::size_t i = 0; i < elements; ++i) set(i, patterns.finite[i % patterns.finite.size()]);
  }

  void set(std::size_t index, std::uint32_t bits) {
    std::byte* const at = bytes_.data() + shift_ + index * element_size(dtype_);
    if (element_size(dtype_) == 4) {
      store_le(at, bits);
    } else {
      store_le(at, static_cast<std::uint16_t>(bits));
    }
  }

  bool are_finite() const { return all_finite(std::span(bytes_).subspan(shift_), dtype_); }

 private:
  DType dtype_;
  std::size_t shift_;
  std::vector<std::byte> bytes_;
};

TEST(AllFinite, HoldsForEveryFiniteValue) {
  for (const Patterns& patterns : all_patterns()) {
    for (std::size_t elements = 0; elements < 700; ++elements) {
      EXPECT_TRUE(Rows(patterns, elements, elements % 5).are_finite())
          << to_string(patterns.dtype) << " " << elements;
    }
  }
}

TEST(AllFinite, FindsOneOddElementWhereverItStands) {
  for (const Patterns& patterns : all_patterns()) {
    for (const std::size_t elements : {1, 2, 3, 5, 127, 128, 129, 255, 256, 257, 613}) {
      Rows rows(patterns, elements, elements % 3);
      for (std::size_t i = 0; i < elements; ++i) {
        rows.set(i, patterns.odd[i % patterns.odd.size()]);
        ASSERT_FALSE(rows.are_finite()) << to_string(patterns.dtype) << " " << i;
        rows.set(i, patterns.finite[i % patterns.finite.size()]);
      }
      ASSERT_TRUE(rows.are_finite());
    }
  }
}

TEST(AllFinite, FindsEveryKindOfOddElement) {
  for (const Patterns& patterns : all_patterns()) {
    for (const std::uint32_t bits : patterns.odd) {
      Rows rows(patterns, 10, 0);
      rows.set(7, bits);
      EXPECT_FALSE(rows.are_finite()) << to_string(patterns.dtype) << std::hex << " " << bits;
    }
  }
}

TEST(AllFinite, AgreesWithTheDefinitionOnAll16BitPatterns) {
  for (const auto& [dtype, exponent] :
       {std::pair{DType::float16, 0x7c00U}, {DType::bfloat16, 0x7f80U}}) {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      std::array<std::byte, 2> element;
      store_le(element.data(), static_cast<std::uint16_t>(bits));
      ASSERT_EQ(all_finite(element, dtype), (bits & exponent) != exponent) << bits;
    }
  }
}

}  // namespace
}  // namespace vitrove
