// From preprocessed items to a graph's inputs: stacking, packing, grids, and what is computed from
// the grids.
//
// Auxiliary inputs, from the grids (t, h, w) of a batch's items, one after the other. A segment is
// what attends to itself: one temporal step of one item, h * w patches.
//   cu_seqlens   [segments + 1]  running sum of the segments' patch counts, from 0
//   segment_ids  [patches]       the number of each patch's segment, from 0
// The others (position_ids, window_index, pos_embed_index, pos_embed_weight) depend on a model
// family's merge and window sizes, and are refused by name until families that need them are there.
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

bool is_supported(AuxInput kind);

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

// Throws Error{invalid_argument} for a kind that is not supported.
InputTensor aux_tensor(AuxInput kind, Batch batch, const std::string& name, ElementType type);

}  // namespace vitrove
