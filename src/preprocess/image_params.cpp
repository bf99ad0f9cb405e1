#include "preprocess/image_params.h"

#include <string>

#include <nlohmann/json.hpp>

namespace vitrove {
namespace {

using nlohmann::json;

constexpr std::uint32_t max_edge = 16'384;

std::uint32_t read_edge(const std::string& name, const json& value) {
  return static_cast<std::uint32_t>(read_whole(name, value, 1, max_edge));
}

std::string describe(SizeRule rule) {
  switch (rule) {
    case SizeRule::exact:
      return "a whole number or {\"height\", \"width\"}";
    case SizeRule::shortest_only:
      return "a whole number or {\"shortest_edge\"}";
    default:
      return "a whole number, {\"shortest_edge\"} or {\"height\", \"width\"}";
  }
}

TargetSize read_size(const std::string& name, const json& value, SizeRule rule) {
  if (value.is_number()) {
    const std::uint32_t edge = read_edge(name, value);
    return rule == SizeRule::exact ? square(edge) : shortest(edge);
  }
  const bool is_shortest =
      value.is_object() && value.size() == 1 && value.contains("shortest_edge");
  if (is_shortest && rule != SizeRule::exact) {
    return shortest(read_edge(name + ".shortest_edge", value["shortest_edge"]));
  }
  const bool is_exact =
      value.is_object() && value.size() == 2 && value.contains("height") && value.contains("width");
  if (is_exact && rule != SizeRule::shortest_only) {
    return {std::nullopt, read_edge(name + ".height", value["height"]),
            read_edge(name + ".width", value["width"])};
  }
  refuse_param_type(name, describe(rule));
}

void put_size(ResolvedParams& to, const std::string& name, const TargetSize& size) {
  if (size.shortest_edge) {
    to.values[name + ".shortest_edge"] = std::int64_t{*size.shortest_edge};
    return;
  }
  to.values[name + ".height"] = std::int64_t{size.height};
  to.values[name + ".width"] = std::int64_t{size.width};
}

TargetSize size_from(const ResolvedReader& reader, const std::string& name) {
  if (reader.has(name + ".shortest_edge")) return shortest(reader.edge(name + ".shortest_edge"));
  return {std::nullopt, reader.edge(name + ".height"), reader.edge(name + ".width")};
}

}  // namespace

void apply_json(const json& object, ParamSource source, const ImageFamily& family,
                ImageParams& params) {
  ParamTaker taker(object, source);
  const auto read_target = [&](const std::string& name, const json& value) {
    return read_size(name, value, family.size_rule);
  };
  const auto read_crop = [](const std::string& name, const json& value) {
    return read_size(name, value, SizeRule::exact);
  };
  taker.take("do_resize", params.do_resize, read_bool);
  taker.take("size", params.size, read_target);
  taker.take("resample", params.resample, read_resampling);
  take_normalization(taker, params.normalization);
  if (family.has_crop) {
    taker.take("do_center_crop", params.do_center_crop, read_bool);
    taker.take("crop_size", params.crop_size, read_crop);
  }
  if (family.has_crop_pct) taker.take("crop_pct", params.crop_pct, read_number);
  if (family.has_classifier_top) {
    taker.take("rescale_offset", params.normalization.rescale_offset, read_bool);
    taker.take("include_top", params.normalization.include_top, read_bool);
  }
  taker.take("jpeg_scaled_decode", params.jpeg_scaled_decode, read_bool);
  bool ignored = true;  // everything becomes RGB in any case
  taker.take("do_convert_rgb", ignored, read_bool);
  taker.finish(family.name);
}

void check_params(const ImageParams& params) {
  if (!(params.crop_pct >= 0.01 && params.crop_pct <= 1.0)) {
    refuse_param_type("crop_pct", "from 0.01 to 1");
  }
  check_finite(params.normalization);
}

ResolvedParams to_resolved(const ImageParams& params, const ImageFamily& family) {
  ResolvedParams result;
  auto& values = result.values;
  values["do_resize"] = params.do_resize;
  put_size(result, "size", params.size);
  values["resample"] = static_cast<std::int64_t>(params.resample);
  add_to_resolved(params.normalization, result);
  if (family.has_crop) {
    values["do_center_crop"] = params.do_center_crop;
    put_size(result, "crop_size", params.crop_size);
  }
  if (family.has_crop_pct) values["crop_pct"] = params.crop_pct;
  if (family.has_classifier_top) {
    values["rescale_offset"] = params.normalization.rescale_offset;
    values["include_top"] = params.normalization.include_top;
  }
  if (params.jpeg_scaled_decode) values["jpeg_scaled_decode"] = true;
  return result;
}

ImageParams from_resolved(const ResolvedParams& resolved, const ImageFamily& family) {
  const ResolvedReader reader(resolved);
  ImageParams params;
  params.do_resize = reader.get<bool>("do_resize");
  params.size = size_from(reader, "size");
  params.resample = static_cast<Resampling>(reader.edge("resample"));
  params.normalization = normalization_from(reader);
  if (family.has_crop) {
    params.do_center_crop = reader.get<bool>("do_center_crop");
    params.crop_size = size_from(reader, "crop_size");
  }
  if (family.has_crop_pct) params.crop_pct = reader.get<double>("crop_pct");
  if (family.has_classifier_top) {
    params.normalization.rescale_offset = reader.get<bool>("rescale_offset");
    params.normalization.include_top = reader.get<bool>("include_top");
  }
  params.jpeg_scaled_decode = reader.has("jpeg_scaled_decode");
  return params;
}

}  // namespace vitrove
