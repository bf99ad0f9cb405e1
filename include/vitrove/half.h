// float32 to and from float16 and bfloat16, whole arrays at a time.
//
// Rounds to nearest, ties to even; too large becomes infinity; subnormals are kept; NaN stays NaN
// (made quiet, sign and leading payload bits kept). The result is the same on every CPU, with or
// without conversion instructions. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vitrove/types.h"

namespace vitrove {

// `to` has at least as many elements as `from`; the two do not overlap.
void float32_to_float16(std::span<const float> from, std::span<std::uint16_t> to);
void float16_to_float32(std::span<const std::uint16_t> from, std::span<float> to);
void float32_to_bfloat16(std::span<const float> from, std::span<std::uint16_t> to);
void bfloat16_to_float32(std::span<const std::uint16_t> from, std::span<float> to);

// Rows as they are cached: `to` is exactly from.size() * element_size(dtype) bytes, of any
// alignment.
void float32_to_rows(std::span<const float> from, DType dtype, std::span<std::byte> to);
void rows_to_float32(std::span<const std::byte> from, DType dtype, std::span<float> to);

}  // namespace vitrove
