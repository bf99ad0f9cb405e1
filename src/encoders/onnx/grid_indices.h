// What towers of the Qwen family compute from their grids in Python loops, which an exported graph
// does not have: indices and weights, for items one after the other.
//
// Patches stand in the order in which preprocessing writes them: temporal step after temporal step,
// in each of them blocks of `merge` * `merge` patches from left to right and from top to bottom,
// and in each block its patches likewise. A block becomes one row of the output.
//
// Pure functions, thread-safe. All throw Error{internal} for a grid that does not divide into
// blocks: preprocessing and the model then disagree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vitrove/types.h"

namespace vitrove {

// [patches, 2]: row and column of each patch in its picture.
std::vector<std::int64_t> patch_positions(std::span<const Grid> grids, std::uint32_t merge);

// [blocks]: the blocks in the order of their windows; `side` is a window's height and width in
// blocks. Windows at the right and lower border are smaller.
std::vector<std::int64_t> window_order(std::span<const Grid> grids, std::uint32_t merge,
                                       std::uint32_t side);

// Learned positions of a grid of `side` * `side`, stretched over an item's grid: where each patch
// lies between its four neighbours, and how near it is to each. Both are [4, patches].
struct StretchedPositions {
  std::vector<std::int64_t> index;
  std::vector<float> weight;
};
StretchedPositions stretched_positions(std::span<const Grid> grids, std::uint32_t merge,
                                       std::uint32_t side);

}  // namespace vitrove
