// The same source is compiled for several instruction sets: the functions marked `kernel` are
// inlined into one entry point for each. Vectors are GCC's and clang's own extension, so that the
// width does not depend on the mood of an optimiser.
#include "preprocess/resample_kernels.h"

#include <cstring>

#include "preprocess/resample_filter.h"

namespace vitrove {
namespace {

using Bytes [[gnu::vector_size(lanes)]] = std::uint8_t;
using Sums [[gnu::vector_size(lanes * sizeof(std::int32_t))]] = std::int32_t;

[[gnu::always_inline]] inline void load(Bytes& to, const std::uint8_t* from) {
  std::memcpy(&to, from, sizeof to);
}

[[gnu::always_inline]] inline void store(std::uint8_t* to, const Bytes& from) {
  std::memcpy(to, &from, sizeof from);
}

[[gnu::always_inline]] inline void start(Sums& sums) { sums = Sums{} + (1 << (weight_bits - 1)); }

[[gnu::always_inline]] inline void add(Sums& sums, const std::uint8_t* bytes, std::int32_t weight) {
  Bytes narrow;
  load(narrow, bytes);
  sums += __builtin_convertvector(narrow, Sums) * weight;
}

[[gnu::always_inline]] inline void finish(const Sums& sums, std::uint8_t* out) {
  Sums wide = sums >> weight_bits;
  const Sums low = Sums{};
  const Sums high = Sums{} + 255;
  wide = wide < low ? low : wide;
  wide = wide > high ? high : wide;
  store(out, __builtin_convertvector(wide, Bytes));
}

// Sixteen vectors of sixteen bytes, rows and columns swapped: four rounds of interleaving each
// vector with the one eight places on.
[[gnu::always_inline]] inline void transpose(std::array<Bytes, lanes>& square) {
  for (int round = 0; round < 4; ++round) {
    std::array<Bytes, lanes> mixed;
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

[[gnu::always_inline]] inline void gather_kernel(const RowPointers& rows, std::size_t bytes,
                                                 std::uint8_t* columns) {
  std::size_t at = 0;
  for (; at + lanes <= bytes; at += lanes) {
    std::array<Bytes, lanes> square;
    for (std::size_t r = 0; r < lanes; ++r) load(square[r], rows[r] + at);
    transpose(square);
    for (std::size_t c = 0; c < lanes; ++c) store(columns + (at + c) * lanes, square[c]);
  }
  for (; at < bytes; ++at) {
    for (std::size_t r = 0; r < lanes; ++r) columns[at * lanes + r] = rows[r][at];
  }
}

[[gnu::always_inline]] inline void scatter_kernel(const std::uint8_t* columns, std::size_t bytes,
                                                  const MutableRowPointers& rows) {
  std::size_t at = 0;
  for (; at + lanes <= bytes; at += lanes) {
    std::array<Bytes, lanes> square;
    for (std::size_t c = 0; c < lanes; ++c) load(square[c], columns + (at + c) * lanes);
    transpose(square);
    for (std::size_t r = 0; r < lanes; ++r) store(rows[r] + at, square[r]);
  }
  for (; at < bytes; ++at) {
    for (std::size_t r = 0; r < lanes; ++r) rows[r][at] = columns[at * lanes + r];
  }
}

[[gnu::always_inline]] inline void combine_columns_kernel(const std::uint8_t* first,
                                                          std::size_t step,
                                                          std::span<const std::int32_t> weights,
                                                          std::uint8_t* out) {
  Sums sums;
  start(sums);
  for (const std::int32_t weight : weights) {
    add(sums, first, weight);
    first += step * lanes;
  }
  finish(sums, out);
}

[[gnu::always_inline]] inline void combine_rows_kernel(std::span<const std::uint8_t* const> rows,
                                                       std::span<const std::int32_t> weights,
                                                       std::size_t bytes, std::uint8_t* out) {
  std::size_t at = 0;
  for (; at + lanes <= bytes; at += lanes) {
    Sums sums;
    start(sums);
    for (std::size_t k = 0; k < weights.size(); ++k) add(sums, rows[k] + at, weights[k]);
    finish(sums, out + at);
  }
  for (; at < bytes; ++at) {
    std::int32_t sum = 1 << (weight_bits - 1);
    for (std::size_t k = 0; k < weights.size(); ++k) sum += rows[k][at] * weights[k];
    sum >>= weight_bits;
    out[at] = static_cast<std::uint8_t>(sum < 0 ? 0 : sum > 255 ? 255 : sum);
  }
}

struct Portable {
  static void gather(const RowPointers& rows, std::size_t bytes, std::uint8_t* columns) {
    gather_kernel(rows, bytes, columns);
  }
  static void scatter(const std::uint8_t* columns, std::size_t bytes,
                      const MutableRowPointers& rows) {
    scatter_kernel(columns, bytes, rows);
  }
  static void combine_columns(const std::uint8_t* first, std::size_t step,
                              std::span<const std::int32_t> weights, std::uint8_t* out) {
    combine_columns_kernel(first, step, weights, out);
  }
  static void combine_rows(std::span<const std::uint8_t* const> rows,
                           std::span<const std::int32_t> weights, std::size_t bytes,
                           std::uint8_t* out) {
    combine_rows_kernel(rows, weights, bytes, out);
  }
};

#if defined(__x86_64__)
struct Avx2 {
  [[gnu::target("avx2")]] static void gather(const RowPointers& rows, std::size_t bytes,
                                             std::uint8_t* columns) {
    gather_kernel(rows, bytes, columns);
  }
  [[gnu::target("avx2")]] static void scatter(const std::uint8_t* columns, std::size_t bytes,
                                              const MutableRowPointers& rows) {
    scatter_kernel(columns, bytes, rows);
  }
  [[gnu::target("avx2")]] static void combine_columns(const std::uint8_t* first, std::size_t step,
                                                      std::span<const std::int32_t> weights,
                                                      std::uint8_t* out) {
    combine_columns_kernel(first, step, weights, out);
  }
  [[gnu::target("avx2")]] static void combine_rows(std::span<const std::uint8_t* const> rows,
                                                   std::span<const std::int32_t> weights,
                                                   std::size_t bytes, std::uint8_t* out) {
    combine_rows_kernel(rows, weights, bytes, out);
  }
};
#endif

template <typename Set>
constexpr ResampleKernels kernels_of{Set::gather, Set::scatter, Set::combine_columns,
                                     Set::combine_rows};

}  // namespace

const ResampleKernels& portable_kernels() { return kernels_of<Portable>; }

const ResampleKernels& best_kernels() {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return kernels_of<Avx2>;
#endif
  return portable_kernels();
}

}  // namespace vitrove
