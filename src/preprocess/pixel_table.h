// From bytes of pixels to the floats of a tensor: rescaling and normalising.
//
// A pixel has 256 values, so each channel's arithmetic is done 256 times and looked up. Rescaling
// is in double and rounded to float, all else in float, as on numpy.
#pragma once

#include <array>

#include "preprocess/json_params.h"
#include "vitrove/params.h"

namespace vitrove {

struct Normalization {
  bool do_rescale = true;
  double rescale_factor = 1.0 / 255.0;
  bool do_normalize = true;
  std::array<double, 3> image_mean{};
  std::array<double, 3> image_std{};
  bool rescale_offset = false;  // EfficientNet: one less after rescaling
  bool include_top = false;     // EfficientNet: divided by the deviation once more
};

using ChannelTable = std::array<float, 256>;

ChannelTable make_channel_table(const Normalization& normalization, std::size_t channel);

// Throws Error{invalid_argument} when a pixel could become infinite or NaN.
void check_finite(const Normalization& normalization);

// The five parameters that all families have, and back.
void take_normalization(ParamTaker& taker, Normalization& to);
void add_to_resolved(const Normalization& normalization, ResolvedParams& resolved);
Normalization normalization_from(const ResolvedReader& reader);

}  // namespace vitrove
