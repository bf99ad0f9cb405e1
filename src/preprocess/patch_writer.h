// Pictures cut into patches, as the Qwen-VL towers take them.
//
// A patch is C * temporal_patch_size * patch_size * patch_size floats in this order. Patches come
// by temporal step, and within it by blocks of merge_size x merge_size neighbours, which the tower
// merges into one token.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "preprocess/patch_params.h"
#include "vitrove/preprocess.h"

namespace vitrove {

// Zeros for the patches of a grid.
Tensor patch_tensor(std::string name, const Grid& grid, const PatchParams& params);

class PatchWriter {
 public:
  explicit PatchWriter(const PatchParams& params);

  // Floats that a temporal step of pictures of this size takes.
  std::size_t step_floats(const Size& size) const;
  // One temporal step: `frames` are temporal_patch_size pictures of one size, the same one several
  // times for a still. `out` has step_floats() elements.
  void write_step(std::span<const RgbImage* const> frames, std::span<float> out) const;

 private:
  void write_patch(std::span<const RgbImage* const> frames, std::size_t top, std::size_t left,
                   float* out) const;

  std::size_t patch_;
  std::size_t temporal_;
  std::size_t merge_;
  std::array<ChannelTable, 3> tables_;
};

}  // namespace vitrove
