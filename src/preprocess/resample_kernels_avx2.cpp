// The inner loops for AVX2. Chosen at run time, so the rest of the program needs no such CPU.
#include "preprocess/resample_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "preprocess/resample_filter.h"

namespace vitrove {
namespace {

constexpr std::size_t width = 8;  // sums a register

[[gnu::target("avx2"), gnu::always_inline]] inline __m256i load_wide(const std::uint8_t* from) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}

// Both packings saturate, which is the clamping to 0 … 255.
[[gnu::target("avx2"), gnu::always_inline]] inline __m128i narrow(__m256i sums) {
  const __m256i whole = _mm256_srai_epi32(sums, weight_bits);
  return _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
}

[[gnu::target("avx2"), gnu::always_inline]] inline void store_pair(std::uint8_t* to, __m256i first,
                                                                   __m256i second) {
  const __m128i bytes = _mm_packus_epi16(narrow(first), narrow(second));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
}

// Sums of Count registers, kept in registers: the loops over them are unrolled.
template <std::size_t Count>
struct Sums {
  __m256i parts[Count];

  [[gnu::target("avx2"), gnu::always_inline]] inline void start() {
    for (auto& part : parts) part = _mm256_set1_epi32(1 << (weight_bits - 1));
  }
  [[gnu::target("avx2"), gnu::always_inline]] inline void add(const std::uint8_t* bytes,
                                                              std::int32_t weight) {
    const __m256i factor = _mm256_set1_epi32(weight);
    for (std::size_t i = 0; i < Count; ++i) {
      const __m256i product = _mm256_mullo_epi32(load_wide(bytes + i * width), factor);
      parts[i] = _mm256_add_epi32(parts[i], product);
    }
  }
  [[gnu::target("avx2"), gnu::always_inline]] inline void finish(std::uint8_t* out) const {
    for (std::size_t i = 0; i < Count; i += 2) {
      store_pair(out + i * width, parts[i], parts[i + 1]);
    }
  }
};

void turn_rows_avx2(const RowPointers& rows, std::size_t pixels, std::uint8_t* turned) {
  gather_rows(rows, 3 * pixels, turned);
}

[[gnu::target("avx2")]] void combine_blocks_avx2(const std::uint8_t* turned, const Taps& taps,
                                                 std::uint8_t* out) {
  Sums<block_bytes / width> sums;
  sums.start();
  const std::uint8_t* first = turned + taps.first * block_bytes;
  for (const std::int32_t weight : taps.weights) {
    sums.add(first, weight);
    first += block_bytes;
  }
  sums.finish(out);
}

template <std::size_t Count>
[[gnu::target("avx2"), gnu::always_inline]] inline void combine_part(
    const std::uint8_t* const* rows, Weights weights, std::size_t at, std::uint8_t* out) {
  Sums<Count> sums;
  sums.start();
  for (std::size_t k = 0; k < weights.size(); ++k) sums.add(rows[k] + at, weights[k]);
  sums.finish(out + at);
}

[[gnu::target("avx2")]] void combine_rows_avx2(const std::uint8_t* const* rows, const Taps& taps,
                                               std::size_t bytes, std::uint8_t* out) {
  const Weights weights = taps.weights;
  constexpr std::size_t large = 8;
  constexpr std::size_t small = 2;
  std::size_t at = 0;
  for (; at + large * width <= bytes; at += large * width) {
    combine_part<large>(rows, weights, at, out);
  }
  for (; at + small * width <= bytes; at += small * width) {
    combine_part<small>(rows, weights, at, out);
  }
  for (; at < bytes; ++at) {
    std::int32_t sum = 1 << (weight_bits - 1);
    for (std::size_t k = 0; k < weights.size(); ++k) sum += rows[k][at] * weights[k];
    sum >>= weight_bits;
    out[at] = static_cast<std::uint8_t>(sum < 0 ? 0 : sum > 255 ? 255 : sum);
  }
}

constexpr ResampleKernels kernels{false, turn_rows_avx2, combine_blocks_avx2, combine_rows_avx2};

}  // namespace

const ResampleKernels* avx2_kernels() {
  return __builtin_cpu_supports("avx2") != 0 ? &kernels : nullptr;
}

}  // namespace vitrove
#else
namespace vitrove {

const ResampleKernels* avx2_kernels() { return nullptr; }

}  // namespace vitrove
#endif
