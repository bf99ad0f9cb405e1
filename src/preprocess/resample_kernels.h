// The inner loops of resizing, once per instruction set.
//
// All work on columns of sixteen: sixteen rows of a picture turned by 90 degrees, or sixteen
// neighbouring bytes of a row. Integer arithmetic, so every version gives the same bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace vitrove {

constexpr std::size_t lanes = 16;
using RowPointers = std::array<const std::uint8_t*, lanes>;
using MutableRowPointers = std::array<std::uint8_t*, lanes>;

struct ResampleKernels {
  // Sixteen rows of `bytes` bytes become `bytes` columns of sixteen.
  void (*gather)(const RowPointers& rows, std::size_t bytes, std::uint8_t* columns);
  // And back.
  void (*scatter)(const std::uint8_t* columns, std::size_t bytes, const MutableRowPointers& rows);
  // One column of output: the weighted sum of columns that lie `step` columns apart.
  void (*combine_columns)(const std::uint8_t* first, std::size_t step,
                          std::span<const std::int32_t> weights, std::uint8_t* out);
  // One row of output of `bytes` bytes: the weighted sum of rows.
  void (*combine_rows)(std::span<const std::uint8_t* const> rows,
                       std::span<const std::int32_t> weights, std::size_t bytes, std::uint8_t* out);
};

// For any CPU of this architecture.
const ResampleKernels& portable_kernels();
// The fastest that this CPU runs.
const ResampleKernels& best_kernels();

}  // namespace vitrove
