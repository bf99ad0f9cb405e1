// The inner loops of resizing, once per instruction set.
//
// Sixteen rows of a picture are turned by 90 degrees, so that a pixel becomes a block of 48 bytes
// (three channels of sixteen rows) and the horizontal pass works on whole blocks. Integer
// arithmetic, so every version gives the same bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace vitrove {

constexpr std::size_t lanes = 16;
constexpr std::size_t block_bytes = 3 * lanes;
using RowPointers = std::array<const std::uint8_t*, lanes>;
using MutableRowPointers = std::array<std::uint8_t*, lanes>;
using Weights = std::span<const std::int32_t>;

// Sixteen rows of `bytes` bytes become `bytes` columns of sixteen.
void gather_rows(const RowPointers& rows, std::size_t bytes, std::uint8_t* columns);
// And back.
void scatter_rows(const std::uint8_t* columns, std::size_t bytes, const MutableRowPointers& rows);

struct ResampleKernels {
  // One block of output: the weighted sum of neighbouring blocks, one a weight.
  void (*combine_blocks)(const std::uint8_t* first, Weights weights, std::uint8_t* out);
  // One row of output of `bytes` bytes: the weighted sum of rows, one a weight.
  void (*combine_rows)(const std::uint8_t* const* rows, Weights weights, std::size_t bytes,
                       std::uint8_t* out);
};

// For any CPU of this architecture.
const ResampleKernels& portable_kernels();
// Null where the CPU has no AVX2.
const ResampleKernels* avx2_kernels();
// The fastest that this CPU runs.
const ResampleKernels& best_kernels();

}  // namespace vitrove
