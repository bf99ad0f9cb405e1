// An element is NaN or infinite when its exponent bits are all ones: then adding the exponent's
// lowest bit to them carries into the place of the sign. Nothing carries beyond it, so a 64-bit
// word tests two or four elements in one addition, and compilers make vectors of words.
#include <algorithm>
#include <bit>
#include <cstring>

#include "vitrove/value_format.h"

namespace vitrove {
namespace {

static_assert(std::endian::native == std::endian::little,
              "cached rows are little-endian; a big-endian host would have to swap them");

struct ExponentBits {
  std::uint64_t mask;
  std::uint64_t lowest;
  std::uint64_t carry;
};

constexpr ExponentBits exponent_bits(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return {0x7f800000'7f800000, 0x00800000'00800000, 0x80000000'80000000};
    case DType::float16:
      return {0x7c007c00'7c007c00, 0x04000400'04000400, 0x80008000'80008000};
    case DType::bfloat16:
      return {0x7f807f80'7f807f80, 0x00800080'00800080, 0x80008000'80008000};
  }
  return {};
}

template <DType dtype>
bool finite(std::span<const std::byte> rows) {
  constexpr ExponentBits bits = exponent_bits(dtype);
  constexpr std::size_t words = 64;  // a fixed count, for the vectoriser's sake
  constexpr std::size_t step = words * sizeof(std::uint64_t);
  const std::byte* at = rows.data();
  std::size_t left = rows.size();
  while (left > 0) {
    std::uint64_t block[words];
    const std::byte* source = at;
    const std::size_t length = std::min(left, step);
    if (length < step) {
      std::memset(block, 0, sizeof block);  // zero is finite
      std::memcpy(block, at, length);
      source = reinterpret_cast<const std::byte*>(block);
    }
    std::uint64_t carries = 0;
    for (std::size_t i = 0; i < words; ++i) {
      std::uint64_t word;
      std::memcpy(&word, source + i * sizeof word, sizeof word);
      carries |= (word & bits.mask) + bits.lowest;
    }
    if ((carries & bits.carry) != 0) return false;
    at += length;
    left -= length;
  }
  return true;
}

}  // namespace

bool all_finite(std::span<const std::byte> rows, DType dtype) {
  switch (dtype) {
    case DType::float32:
      return finite<DType::float32>(rows);
    case DType::float16:
      return finite<DType::float16>(rows);
    case DType::bfloat16:
      return finite<DType::bfloat16>(rows);
  }
  return false;
}

}  // namespace vitrove
