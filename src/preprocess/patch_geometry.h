// Which size a picture or clip gets in the Qwen-VL families, and which grid of patches.
#pragma once

#include "preprocess/patch_params.h"
#include "vitrove/preprocess.h"

namespace vitrove {

struct PatchLayout {
  Size resized;
  Grid grid;  // t: temporal patches
  bool operator==(const PatchLayout&) const = default;
};

// How many pixels an item may have for the model, as smart resizing counts them: what rounding to
// whole tokens adds is left out.
struct PatchBounds {
  std::uint64_t picture_pixels = 0;
  std::uint64_t frame_pixels = 0;
  std::uint64_t clip_pixels = 0;  // of all frames together
};
// The limits, and where they say nothing what the family's own parameters allow.
PatchBounds bounds_of(const PatchFamily& family, const PreprocessLimits& limits);
// Throws Error{invalid_argument} for limits that no item can keep.
void check_bounds(const PatchFamily& family, const PreprocessLimits& limits);

// Sides become multiples of patch_size * merge_size, with an area between min_pixels and
// max_pixels, rounded as the reference rounds; `frames` is 1 for a picture. Throws
// Error{invalid_argument} for sides of a ratio above 200 : 1, for a clip of Qwen3-VL that is
// shorter than a temporal patch or narrower than a token, and without resizing for sides that are
// no multiples; Error{too_large} beyond the bounds.
PatchLayout lay_out_picture(const Size& picture, const PatchParams& params,
                            const PatchBounds& bounds);
PatchLayout lay_out_clip(const Size& picture, std::uint64_t frames, const PatchParams& params,
                         const PatchFamily& family, const PatchBounds& bounds);

// Throws Error{invalid_argument} for a side of zero.
void check_pixels(const Size& picture);

// Tokens that the language model counts: merge_size squared patches make one.
std::uint32_t token_count(const Grid& grid, std::uint32_t merge_size);

}  // namespace vitrove
