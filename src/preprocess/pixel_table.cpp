#include "preprocess/pixel_table.h"

#include <cmath>
#include <vector>

namespace vitrove {
namespace {

std::vector<double> list_of(const std::array<double, 3>& values) {
  return {values.begin(), values.end()};
}

bool gives_finite_values(const Normalization& normalization) {
  const double brightest = 255.0 * (normalization.do_rescale ? normalization.rescale_factor : 1.0);
  const float value = static_cast<float>(brightest) - 1.0F;
  if (!std::isfinite(value)) return false;
  if (!normalization.do_normalize) return true;  // mean and deviation are then not looked at
  for (std::size_t c = 0; c < 3; ++c) {
    const auto deviation = static_cast<float>(normalization.image_std[c]);
    const auto mean = static_cast<float>(normalization.image_mean[c]);
    if (!std::isfinite((value - mean) / deviation / deviation)) return false;
    if (!std::isfinite(mean / deviation / deviation)) return false;
  }
  return true;
}

}  // namespace

ChannelTable make_channel_table(const Normalization& normalization, std::size_t channel) {
  const auto mean = static_cast<float>(normalization.image_mean[channel]);
  const auto deviation = static_cast<float>(normalization.image_std[channel]);
  ChannelTable table;
  for (std::size_t level = 0; level < table.size(); ++level) {
    auto value = static_cast<float>(level);
    if (normalization.do_rescale) {
      value = static_cast<float>(static_cast<double>(level) * normalization.rescale_factor);
    }
    if (normalization.rescale_offset) value -= 1.0F;
    if (normalization.do_normalize) value = (value - mean) / deviation;
    if (normalization.do_normalize && normalization.include_top) value = value / deviation;
    table[level] = value;
  }
  return table;
}

void check_finite(const Normalization& normalization) {
  if (gives_finite_values(normalization)) return;
  refuse_params("rescale_factor, image_mean and image_std lead to values that are not finite");
}

void take_normalization(ParamTaker& taker, Normalization& to) {
  taker.take("do_rescale", to.do_rescale, read_bool);
  taker.take("rescale_factor", to.rescale_factor, read_number);
  taker.take("do_normalize", to.do_normalize, read_bool);
  taker.take("image_mean", to.image_mean, read_channels);
  taker.take("image_std", to.image_std, read_channels);
}

void add_to_resolved(const Normalization& normalization, ResolvedParams& resolved) {
  auto& values = resolved.values;
  values["do_rescale"] = normalization.do_rescale;
  values["rescale_factor"] = normalization.rescale_factor;
  values["do_normalize"] = normalization.do_normalize;
  values["image_mean"] = list_of(normalization.image_mean);
  values["image_std"] = list_of(normalization.image_std);
}

Normalization normalization_from(const ResolvedReader& reader) {
  Normalization result;
  result.do_rescale = reader.get<bool>("do_rescale");
  result.rescale_factor = reader.get<double>("rescale_factor");
  result.do_normalize = reader.get<bool>("do_normalize");
  result.image_mean = reader.channels("image_mean");
  result.image_std = reader.channels("image_std");
  return result;
}

}  // namespace vitrove
