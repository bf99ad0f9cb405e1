// From preprocessed items to a graph's inputs: stacking, packing, grids, and what is computed from
// the grids.
//
// Auxiliary inputs, from the grids (t, h, w) of a batch's items, one after the other. A segment is
// what attends to itself: one temporal step of one item, h * w patches. Patches are in the order of
// grid_indices.h; a block is spatial_merge_size * spatial_merge_size of them.
//   cu_seqlens        [segments + 1]  running sum of the segments' patch counts, from 0
//   segment_ids       [patches]       the number of each patch's segment, from 0
//   position_ids      [patches, 2]    row and column of each patch, for rotary embeddings
//   window_index      [blocks]        the blocks in the order of their windows, each window_size
//                                     pixels high and wide
//   pos_embed_index   [4, patches]    the four of num_grid_per_side * num_grid_per_side learned
//                                     positions around each patch
//   pos_embed_weight  [4, patches]    how much of each (bilinear); floating point
//
// Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "encoders/onnx/model_config.h"
#include "encoders/onnx/onnx_graph.h"
#include "vitrove/preprocess.h"

namespace vitrove {

using Batch = std::span<const PreprocessedItem* const>;

// Patches of an item, as its grid counts them.
std::uint64_t patch_count(const Grid& grid);

// The grid of an item whose model needs one. Throws Error{internal} when there is none.
const Grid& required_grid(const PreprocessedItem& item);

// Items of one shape [..] as one tensor [N, ..]. A batch of one is not copied unless its type
// changes. Throws Error{internal} for tensors that are not float32 or differ in shape.
InputTensor stack_items(Batch batch, const std::string& name, ElementType type);

// Items of shapes [patches, ..] as one tensor [sum of patches, ..]. An item's grid, where it has
// one, must count as many patches.
InputTensor pack_items(Batch batch, const std::string& name, ElementType type);

// [N, 3]: t, h, w. `type` is int32 or int64, here and below.
InputTensor grid_tensor(Batch batch, const std::string& name, ElementType type);

// `params` hold what the kind needs. `type` is float32 or float16 for pos_embed_weight. Throws
// Error{internal} for a grid that does not divide into blocks.
InputTensor aux_tensor(AuxInput kind, const AuxParams& params, Batch batch, const std::string& name,
                       ElementType type);

}  // namespace vitrove
