// The parameters of the image processors, typed, and their two outer forms: JSON and
// ResolvedParams.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "preprocess/pixel_table.h"
#include "preprocess/resample_filter.h"
#include "vitrove/params.h"
#include "vitrove/preprocess.h"

namespace vitrove {

// Either the length that the shorter side gets, or both sides.
struct TargetSize {
  std::optional<std::uint32_t> shortest_edge;
  std::uint32_t height = 0;  // when there is no shortest_edge
  std::uint32_t width = 0;
};
constexpr TargetSize shortest(std::uint32_t edge) { return {edge, 0, 0}; }
constexpr TargetSize square(std::uint32_t edge) { return {std::nullopt, edge, edge}; }

struct ImageParams {
  bool do_resize = true;
  TargetSize size;
  Resampling resample = Resampling::bicubic;
  double crop_pct = 224.0 / 256.0;  // ConvNeXT
  bool do_center_crop = false;
  TargetSize crop_size;
  Normalization normalization;
  bool jpeg_scaled_decode = false;
};

// How a family understands "size".
enum class SizeRule : std::uint8_t {
  shortest_or_exact,  // a number is the shortest edge
  exact,              // a number is both sides
  shortest_only,
};

struct ImageFamily {
  std::string_view name;
  // Of image_processor_type, without "Fast"; a second one may be older.
  std::array<std::string_view, 3> types;
  std::uint32_t version;
  SizeRule size_rule;
  bool has_crop;            // do_center_crop, crop_size
  bool has_crop_pct;        // ConvNeXT's own way of cropping
  bool has_classifier_top;  // rescale_offset, include_top
  ImageParams defaults;
};

// Replaces what `object` names; null means the default stays. Throws Error{invalid_argument} naming
// parameters that are unknown, of the wrong type or out of range.
void apply_json(const nlohmann::json& object, ParamSource source, const ImageFamily& family,
                ImageParams& params);

// Throws Error{invalid_argument} for what no picture could be processed with.
void check_params(const ImageParams& params);

// Every parameter of the family, and back.
ResolvedParams to_resolved(const ImageParams& params, const ImageFamily& family);
ImageParams from_resolved(const ResolvedParams& resolved, const ImageFamily& family);

}  // namespace vitrove
