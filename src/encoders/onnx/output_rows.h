// From a graph's output to the rows of each item. Everything is copied: the runtime's buffer is
// used again by the next run (field case B35).
//
// Throws Error{internal} when the output is not what the layout says or gives an item no rows.
// Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "encoders/onnx/batch_inputs.h"
#include "encoders/onnx/onnx_graph.h"
#include "vitrove/encoder.h"

namespace vitrove {

// [N, tokens, dim]
std::vector<EncoderOutput> split_tokens(const OutputTensor& output, std::size_t items, DType dtype);

// [N, C, H, W], read as H * W rows of C; the grid is {1, H, W}.
std::vector<EncoderOutput> split_chw(const OutputTensor& output, std::size_t items, DType dtype);

// [rows, dim]. A tower merges a fixed number of patches into each row; how many follows from the
// sums of both, and every item's patches must be a multiple of it.
std::vector<EncoderOutput> split_packed(const OutputTensor& output, Batch batch, DType dtype);

// Which dimension of the output's shape is a row's.
std::size_t dim_axis(RowLayout layout);
// The rank that the layout means.
std::size_t output_rank(RowLayout layout);

}  // namespace vitrove
