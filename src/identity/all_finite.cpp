// An element is NaN or infinite when its exponent bits are all ones: then adding the exponent's
// lowest bit to them carries into the place of the sign. Nothing carries beyond it, so a 64-bit
// word tests two or four elements in one addition, and compilers make vectors of words, as wide as
// the CPU has them: that is why the loop is in the checksum kernels.
#include <algorithm>
#include <array>
#include <bit>

#include "identity/checksum_dispatch.h"
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

std::uint64_t scan_tail(std::span<const std::byte> rest, const ExponentBits& bits) {
  std::array<std::byte, checksum::scan_block> block{};  // zero is finite
  std::ranges::copy(rest, block.begin());
  return checksum::best_kernel().scan(block.data(), 1, bits.mask, bits.lowest);
}

}  // namespace

bool all_finite(std::span<const std::byte> rows, DType dtype) {
  constexpr std::size_t blocks_at_once = 128;  // then an early NaN ends it
  constexpr std::size_t step = blocks_at_once * checksum::scan_block;
  const ExponentBits bits = exponent_bits(dtype);
  while (!rows.empty()) {
    const std::size_t blocks = std::min(rows.size(), step) / checksum::scan_block;
    std::uint64_t carries =
        checksum::best_kernel().scan(rows.data(), blocks, bits.mask, bits.lowest);
    rows = rows.subspan(blocks * checksum::scan_block);
    if (rows.size() < checksum::scan_block) {
      carries |= scan_tail(rows, bits);
      rows = {};
    }
    if ((carries & bits.carry) != 0) return false;
  }
  return true;
}

}  // namespace vitrove
