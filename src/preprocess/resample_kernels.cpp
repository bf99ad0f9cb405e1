#include "preprocess/resample_kernels.h"

#include <algorithm>
#include <cstring>

#include "preprocess/resample_filter.h"

namespace vitrove {
namespace {

// GCC's and clang's vector extension: sixteen bytes are a register everywhere.
using Bytes [[gnu::vector_size(lanes)]] = std::uint8_t;
using Square = std::array<Bytes, lanes>;

void load(Bytes& to, const std::uint8_t* from) { std::memcpy(&to, from, sizeof to); }
void store(std::uint8_t* to, const Bytes& from) { std::memcpy(to, &from, sizeof from); }

// Rows and columns swapped: four rounds of interleaving each vector with the one eight places on.
void transpose(Square& square) {
  for (int round = 0; round < 4; ++round) {
    Square mixed;
    for (std::size_t i = 0; i < lanes / 2; ++i) {
      const Bytes a = square[i];
      const Bytes b = square[i + lanes / 2];
      mixed[2 * i] =
          __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      mixed[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29,
                                                 14, 30, 15, 31);
    }
    square = mixed;
  }
}

constexpr std::int32_t rounding = 1 << (weight_bits - 1);

std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> weight_bits, 0, 255));
}

void turn_rows(const RowPointers& rows, std::size_t pixels, std::uint8_t* turned) {
  gather_rows(rows, 3 * pixels, turned);
}

void combine_blocks(const std::uint8_t* turned, const Taps& taps, std::uint8_t* out) {
  std::array<std::int32_t, block_bytes> sums;
  sums.fill(rounding);
  const std::uint8_t* first = turned + taps.first * block_bytes;
  for (const std::int32_t weight : taps.weights) {
    for (std::size_t i = 0; i < block_bytes; ++i) sums[i] += first[i] * weight;
    first += block_bytes;
  }
  std::ranges::transform(sums, out, to_byte);
}

void combine_rows(const std::uint8_t* const* rows, const Taps& taps, std::size_t bytes,
                  std::uint8_t* out) {
  // In pieces, so that the sums stay in the fastest cache.
  constexpr std::size_t piece = 256;
  std::array<std::int32_t, piece> sums;
  for (std::size_t at = 0; at < bytes; at += piece) {
    const std::size_t count = std::min(piece, bytes - at);
    sums.fill(rounding);
    for (std::size_t k = 0; k < taps.weights.size(); ++k) {
      const std::uint8_t* const row = rows[k] + at;
      for (std::size_t i = 0; i < count; ++i) sums[i] += row[i] * taps.weights[k];
    }
    std::transform(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(count), out + at,
                   to_byte);
  }
}

constexpr ResampleKernels portable{false, turn_rows, combine_blocks, combine_rows};

}  // namespace

void gather_rows(const RowPointers& rows, std::size_t bytes, std::uint8_t* columns) {
  std::size_t at = 0;
  for (; at + lanes <= bytes; at += lanes) {
    Square square;
    for (std::size_t r = 0; r < lanes; ++r) load(square[r], rows[r] + at);
    transpose(square);
    for (std::size_t c = 0; c < lanes; ++c) store(columns + (at + c) * lanes, square[c]);
  }
  for (; at < bytes; ++at) {
    for (std::size_t r = 0; r < lanes; ++r) columns[at * lanes + r] = rows[r][at];
  }
}

void scatter_rows(const std::uint8_t* columns, std::size_t bytes, const MutableRowPointers& rows) {
  std::size_t at = 0;
  for (; at + lanes <= bytes; at += lanes) {
    Square square;
    for (std::size_t c = 0; c < lanes; ++c) load(square[c], columns + (at + c) * lanes);
    transpose(square);
    for (std::size_t r = 0; r < lanes; ++r) store(rows[r] + at, square[r]);
  }
  for (; at < bytes; ++at) {
    for (std::size_t r = 0; r < lanes; ++r) rows[r][at] = columns[at * lanes + r];
  }
}

const ResampleKernels& portable_kernels() { return portable; }

const ResampleKernels& best_kernels() {
  static const ResampleKernels& best = [&]() -> const ResampleKernels& {
    if (const auto* vnni = vnni_kernels()) return *vnni;
    if (const auto* avx2 = avx2_kernels()) return *avx2;
    return portable;
  }();
  return best;
}

}  // namespace vitrove
