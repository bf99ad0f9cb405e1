// Each conversion is a loop over one branch-free function of the bits, in steps of a fixed length,
// so that compilers turn it into vector code even where they are shy about unknown loop counts.
// float16 has instructions of its own on x86-64 since 2012; they give the same bits.
#include "vitrove/half.h"

#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "vitrove/error.h"

namespace vitrove {
namespace {

static_assert(std::endian::native == std::endian::little,
              "cached rows are little-endian; a big-endian host would have to swap them");

constexpr std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) {
  return condition ? yes : no;
}

constexpr std::uint16_t to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7fffffff;

  // Adding 0.5 leaves a small value's bits in units of 2^-24, float16's least subnormal; the
  // addition itself rounds to nearest even.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000;

  const std::uint32_t odd = (magnitude >> 13) & 1;
  const std::uint32_t rebiased = magnitude - (112U << 23);
  const std::uint32_t normal = (rebiased + 0xfff + odd) >> 13;  // a carry may make it infinity

  const std::uint32_t not_a_number = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  std::uint32_t result = select(magnitude < (113U << 23), subnormal, normal);
  result = select(magnitude >= (143U << 23), 0x7c00, result);
  result = select(magnitude > 0x7f800000, not_a_number, result);
  return static_cast<std::uint16_t>(sign | result);
}

constexpr float from_float16(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t magnitude = half & 0x7fffU;
  const std::uint32_t normal = (magnitude << 13) + (112U << 23);
  const std::uint32_t infinite = (magnitude << 13) | 0x7f800000;
  const std::uint32_t not_a_number = infinite | 0x00400000;
  // Subnormals count units of 2^-24.
  const auto subnormal = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24F);

  std::uint32_t result = select(magnitude < 0x0400, subnormal, normal);
  result = select(magnitude >= 0x7c00, infinite, result);
  result = select(magnitude > 0x7c00, not_a_number, result);
  return std::bit_cast<float>(sign | result);
}

constexpr std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const std::uint32_t not_a_number = (bits >> 16) | 0x0040;
  return static_cast<std::uint16_t>(
      select((bits & 0x7fffffff) > 0x7f800000, not_a_number, rounded));
}

constexpr float from_bfloat16(std::uint16_t half) {
  const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
  const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  return std::bit_cast<float>(bits | select(is_nan, 0x00400000, 0));
}

// Bytes rather than elements, because rows in pages may start anywhere.
template <typename From, typename To, To (*convert)(From)>
void convert_all(const void* from, void* to, std::size_t count) {
  constexpr std::size_t step = 64;
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  From in[step];
  To out[step];
  for (; count >= step; count -= step) {
    std::memcpy(in, source, sizeof in);
    for (std::size_t i = 0; i < step; ++i) out[i] = convert(in[i]);
    std::memcpy(target, out, sizeof out);
    source += sizeof in;
    target += sizeof out;
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(in, source + i * sizeof(From), sizeof(From));
    out[0] = convert(in[0]);
    std::memcpy(target + i * sizeof(To), out, sizeof(To));
  }
}

#if defined(__x86_64__)
bool has_float16_instructions() {
  static const bool answer = [] {
    // clang 16 has no name for f16c; "avx" also says that the system saves the wide registers.
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
  }();
  return answer;
}

// Both convert the leading multiple of eight elements and say how many that was.
[[gnu::target("avx,f16c")]] std::size_t to_float16_x86(const void* from, void* to,
                                                       std::size_t count) {
  const auto* source = static_cast<const float*>(from);
  auto* target = static_cast<std::byte*>(to);
  const std::size_t whole = count / 8 * 8;
  for (std::size_t i = 0; i < whole; i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(source + i), _MM_FROUND_TO_NEAREST_INT);
    std::memcpy(target + 2 * i, &halves, sizeof halves);
  }
  return whole;
}

[[gnu::target("avx,f16c")]] std::size_t from_float16_x86(const void* from, void* to,
                                                         std::size_t count) {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<float*>(to);
  const std::size_t whole = count / 8 * 8;
  for (std::size_t i = 0; i < whole; i += 8) {
    __m128i halves;
    std::memcpy(&halves, source + 2 * i, sizeof halves);
    _mm256_storeu_ps(target + i, _mm256_cvtph_ps(halves));
  }
  return whole;
}
#else
bool has_float16_instructions() { return false; }
std::size_t to_float16_x86(const void*, void*, std::size_t) { return 0; }
std::size_t from_float16_x86(const void*, void*, std::size_t) { return 0; }
#endif

void to_float16_bytes(const float* from, std::byte* to, std::size_t count) {
  const std::size_t done = has_float16_instructions() ? to_float16_x86(from, to, count) : 0;
  convert_all<float, std::uint16_t, to_float16>(from + done, to + 2 * done, count - done);
}

void from_float16_bytes(const std::byte* from, float* to, std::size_t count) {
  const std::size_t done = has_float16_instructions() ? from_float16_x86(from, to, count) : 0;
  convert_all<std::uint16_t, float, from_float16>(from + 2 * done, to + done, count - done);
}

void require(bool sizes_fit) {
  if (!sizes_fit) throw Error(ErrorCode::internal, "conversion between arrays of different sizes");
}

}  // namespace

void float32_to_float16(std::span<const float> from, std::span<std::uint16_t> to) {
  require(to.size() >= from.size());
  to_float16_bytes(from.data(), std::as_writable_bytes(to).data(), from.size());
}

void float16_to_float32(std::span<const std::uint16_t> from, std::span<float> to) {
  require(to.size() >= from.size());
  from_float16_bytes(std::as_bytes(from).data(), to.data(), from.size());
}

void float32_to_bfloat16(std::span<const float> from, std::span<std::uint16_t> to) {
  require(to.size() >= from.size());
  convert_all<float, std::uint16_t, to_bfloat16>(from.data(), to.data(), from.size());
}

void bfloat16_to_float32(std::span<const std::uint16_t> from, std::span<float> to) {
  require(to.size() >= from.size());
  convert_all<std::uint16_t, float, from_bfloat16>(from.data(), to.data(), from.size());
}

void float32_to_rows(std::span<const float> from, DType dtype, std::span<std::byte> to) {
  require(to.size() == from.size() * element_size(dtype));
  if (from.empty()) return;
  switch (dtype) {
    case DType::float32:
      std::memcpy(to.data(), from.data(), to.size());
      return;
    case DType::float16:
      return to_float16_bytes(from.data(), to.data(), from.size());
    case DType::bfloat16:
      return convert_all<float, std::uint16_t, to_bfloat16>(from.data(), to.data(), from.size());
  }
}

void rows_to_float32(std::span<const std::byte> from, DType dtype, std::span<float> to) {
  require(from.size() == to.size() * element_size(dtype));
  if (to.empty()) return;
  switch (dtype) {
    case DType::float32:
      std::memcpy(to.data(), from.data(), from.size());
      return;
    case DType::float16:
      return from_float16_bytes(from.data(), to.data(), to.size());
    case DType::bfloat16:
      return convert_all<std::uint16_t, float, from_bfloat16>(from.data(), to.data(), to.size());
  }
}

}  // namespace vitrove
