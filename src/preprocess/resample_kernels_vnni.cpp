// The inner loops for AVX-512 with VNNI: four products of bytes, and their sum, in a step. Chosen
// at run time, so the rest of the program needs no such CPU.
#include "preprocess/resample_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "preprocess/resample_filter.h"

namespace vitrove {
namespace {

constexpr std::size_t register_bytes = 64;
constexpr std::size_t group_pixels = 4;
constexpr std::size_t chunk_pixels = 16;  // of a row, turned at a time
constexpr std::size_t chunk_bytes = 3 * chunk_pixels;
constexpr std::size_t chunk_registers = 3 * chunk_pixels / group_pixels;

// The sums of sixteen outputs by digit of the weights; put together at the end.
struct DigitSums {
  __m512i low;
  __m512i middle;
  __m512i high;

  [[gnu::target("avx512f"), gnu::always_inline]] inline void start() {
    low = _mm512_set1_epi32(1 << (weight_bits - 1));
    middle = _mm512_setzero_si512();
    high = _mm512_setzero_si512();
  }
  [[gnu::target("avx512f,avx512vnni"), gnu::always_inline]] inline void add(__m512i pixels,
                                                                            __m512i low_digits,
                                                                            __m512i middle_digits,
                                                                            __m512i high_digits) {
    low = _mm512_dpbusd_epi32(low, pixels, low_digits);
    middle = _mm512_dpbusd_epi32(middle, pixels, middle_digits);
    high = _mm512_dpbusd_epi32(high, pixels, high_digits);
  }
  // Not yet held between 0 and 255.
  [[gnu::target("avx512f"), gnu::always_inline]] inline __m512i finish() const {
    const __m512i upper = _mm512_add_epi32(_mm512_slli_epi32(high, 8), middle);
    return _mm512_srai_epi32(_mm512_add_epi32(_mm512_slli_epi32(upper, 8), low), weight_bits);
  }
};

[[gnu::target("avx512f"), gnu::always_inline]] inline __m512i digits(std::uint32_t of_four) {
  return _mm512_set1_epi32(static_cast<int>(of_four));
}

// Where the bytes of sixteen pixels go: four pixels of a channel together.
alignas(register_bytes) constexpr std::array<std::uint8_t, register_bytes> planar_order = [] {
  std::array<std::uint8_t, register_bytes> order{};
  for (std::size_t i = 0; i < chunk_bytes; ++i) {
    const std::size_t group = i / (3 * group_pixels);
    const std::size_t channel = i / group_pixels % 3;
    const std::size_t pixel = group * group_pixels + i % group_pixels;
    order[i] = static_cast<std::uint8_t>(3 * pixel + channel);
  }
  return order;
}();

struct RowRegisters {
  __m512i rows[lanes];
};

// Rows and columns of 32-bit numbers swapped: four rounds of interleaving each register with the
// one eight places on.
[[gnu::target("avx512f"), gnu::always_inline]] inline void transpose_numbers(RowRegisters& square) {
  const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i second =
      _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  for (int round = 0; round < 4; ++round) {
    RowRegisters mixed;
    for (std::size_t i = 0; i < lanes / 2; ++i) {
      mixed.rows[2 * i] =
          _mm512_permutex2var_epi32(square.rows[i], first, square.rows[i + lanes / 2]);
      mixed.rows[2 * i + 1] =
          _mm512_permutex2var_epi32(square.rows[i], second, square.rows[i + lanes / 2]);
    }
    square = mixed;
  }
}

[[gnu::target("avx512f,avx512bw,avx512vbmi")]] void turn_rows_vnni(const RowPointers& rows,
                                                                   std::size_t pixels,
                                                                   std::uint8_t* turned) {
  const __m512i order = _mm512_load_si512(planar_order.data());
  for (std::size_t at = 0; at < pixels; at += chunk_pixels) {
    const std::size_t count = pixels - at < chunk_pixels ? pixels - at : chunk_pixels;
    const __mmask64 there = (__mmask64{1} << (3 * count)) - 1;
    RowRegisters square;
    for (std::size_t r = 0; r < lanes; ++r) {
      const __m512i row = _mm512_maskz_loadu_epi8(there, rows[r] + 3 * at);
      square.rows[r] = _mm512_permutexvar_epi8(order, row);
    }
    transpose_numbers(square);
    for (std::size_t i = 0; i < chunk_registers; ++i, turned += register_bytes) {
      _mm512_storeu_si512(turned, square.rows[i]);
    }
  }
}

[[gnu::target("avx512f,avx512bw,avx512vnni")]] void combine_blocks_vnni(const std::uint8_t* turned,
                                                                        const Taps& taps,
                                                                        std::uint8_t* out) {
  DigitSums sums[3];
  for (auto& of_channel : sums) of_channel.start();
  const std::uint8_t* from = turned + taps.first * 3 * register_bytes;
  for (const Quad& quad : taps.quads) {
    const __m512i low = digits(quad[0]);
    const __m512i middle = digits(quad[1]);
    const __m512i high = digits(quad[2]);
    for (auto& of_channel : sums) {
      of_channel.add(_mm512_loadu_si512(from), low, middle, high);
      from += register_bytes;
    }
  }
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const __m512i positive = _mm512_max_epi32(sums[channel].finish(), _mm512_setzero_si512());
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + channel * lanes),
                     _mm512_cvtusepi32_epi8(positive));
  }
}

// 64 bytes of output; `there` tells which of them are.
[[gnu::target("avx512f,avx512bw,avx512vnni"), gnu::always_inline]] inline void combine_columns(
    const std::uint8_t* const* rows, std::span<const Quad> quads, std::size_t at, __mmask64 there,
    std::uint8_t* out) {
  DigitSums sums[4];
  for (auto& part : sums) part.start();
  for (const Quad& quad : quads) {
    const __m512i a = _mm512_maskz_loadu_epi8(there, rows[0] + at);
    const __m512i b = _mm512_maskz_loadu_epi8(there, rows[1] + at);
    const __m512i c = _mm512_maskz_loadu_epi8(there, rows[2] + at);
    const __m512i d = _mm512_maskz_loadu_epi8(there, rows[3] + at);
    rows += group_pixels;
    const __m512i low = digits(quad[0]);
    const __m512i middle = digits(quad[1]);
    const __m512i high = digits(quad[2]);
    const __m512i ab = _mm512_unpacklo_epi8(a, b);
    const __m512i cd = _mm512_unpacklo_epi8(c, d);
    sums[0].add(_mm512_unpacklo_epi16(ab, cd), low, middle, high);
    sums[1].add(_mm512_unpackhi_epi16(ab, cd), low, middle, high);
    const __m512i ab_later = _mm512_unpackhi_epi8(a, b);
    const __m512i cd_later = _mm512_unpackhi_epi8(c, d);
    sums[2].add(_mm512_unpacklo_epi16(ab_later, cd_later), low, middle, high);
    sums[3].add(_mm512_unpackhi_epi16(ab_later, cd_later), low, middle, high);
  }
  // Both packings saturate, which is the holding between 0 and 255, and undo the unpacking's order.
  const __m512i first = _mm512_packs_epi32(sums[0].finish(), sums[1].finish());
  const __m512i second = _mm512_packs_epi32(sums[2].finish(), sums[3].finish());
  _mm512_mask_storeu_epi8(out + at, there, _mm512_packus_epi16(first, second));
}

[[gnu::target("avx512f,avx512bw,avx512vnni")]] void combine_rows_vnni(
    const std::uint8_t* const* rows, const Taps& taps, std::size_t bytes, std::uint8_t* out) {
  std::size_t at = 0;
  for (; at + register_bytes <= bytes; at += register_bytes) {
    combine_columns(rows, taps.quads, at, ~__mmask64{0}, out);
  }
  if (at == bytes) return;
  combine_columns(rows, taps.quads, at, (__mmask64{1} << (bytes - at)) - 1, out);
}

constexpr ResampleKernels vnni{true, turn_rows_vnni, combine_blocks_vnni, combine_rows_vnni};

}  // namespace

const ResampleKernels* vnni_kernels() {
  const bool has_all =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512vbmi") != 0 && __builtin_cpu_supports("avx512vnni") != 0;
  return has_all ? &vnni : nullptr;
}

}  // namespace vitrove
#else
namespace vitrove {

const ResampleKernels* vnni_kernels() { return nullptr; }

}  // namespace vitrove
#endif
