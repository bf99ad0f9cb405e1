// The inner loops of resizing, once per instruction set.
//
// Sixteen rows of a picture are turned by 90 degrees, so that the horizontal pass works on whole
// registers: a pixel becomes a block of 48 bytes (three channels of sixteen rows) or, for kernels
// that take quads, four pixels become 192 bytes (three channels of sixteen rows of four pixels).
// Integer arithmetic, so every version gives the same bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "preprocess/quad_weights.h"

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

// What makes one output: which pixels or rows from where on, and how much they count.
struct Taps {
  std::size_t first = 0;        // in pixels, or in fours where quads are taken
  Weights weights;              // where no quads are taken
  std::span<const Quad> quads;  // where they are
};

struct ResampleKernels {
  bool takes_quads;
  // Sixteen rows of so many pixels, to turned_bytes() bytes.
  void (*turn_rows)(const RowPointers& rows, std::size_t pixels, std::uint8_t* turned);
  // One block of 48 bytes of output: the weighted sum of neighbouring pixels.
  void (*combine_blocks)(const std::uint8_t* turned, const Taps& taps, std::uint8_t* out);
  // One row of output of `bytes` bytes: the weighted sum of rows. For quads, as many rows as they
  // hold weights.
  void (*combine_rows)(const std::uint8_t* const* rows, const Taps& taps, std::size_t bytes,
                       std::uint8_t* out);
};

// What sixteen turned rows take, for all kernels.
constexpr std::size_t turned_bytes(std::size_t pixels) {
  return (pixels + lanes - 1) / lanes * lanes * block_bytes;
}

// For any CPU of this architecture.
const ResampleKernels& portable_kernels();
// Null where the CPU has not what they need.
const ResampleKernels* avx2_kernels();
const ResampleKernels* vnni_kernels();
// The fastest that this CPU runs.
const ResampleKernels& best_kernels();

}  // namespace vitrove
