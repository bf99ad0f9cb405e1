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

// Sides become multiples of patch_size * merge_size, with an area between min_pixels and
// max_pixels, rounded as the reference rounds; `frames` is 1 for a picture. Throws
// Error{invalid_argument} for sides of a ratio above 200 : 1, for a clip of Qwen3-VL that is
// shorter than a temporal patch or narrower than a token, without resizing for sides that are no
// multiples, and beyond the limits.
PatchLayout lay_out_picture(const Size& picture, const PatchParams& params,
                            const PreprocessLimits& limits);
PatchLayout lay_out_clip(const Size& picture, std::uint64_t frames, const PatchParams& params,
                         const PatchFamily& family, const PreprocessLimits& limits);

// Tokens that the language model counts: merge_size squared patches make one.
std::uint32_t token_count(const Grid& grid, std::uint32_t merge_size);

}  // namespace vitrove
