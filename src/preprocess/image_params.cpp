#include "preprocess/image_params.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "vitrove/error.h"

namespace vitrove {
namespace {

using nlohmann::json;

constexpr std::uint32_t max_edge = 16'384;

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message);
}

[[noreturn]] void fail_type(const std::string& name, const std::string& expected) {
  fail("parameter " + name + " must be " + expected);
}

bool read_bool(const std::string& name, const json& value) {
  if (!value.is_boolean()) fail_type(name, "true or false");
  return value.get<bool>();
}

double read_number(const std::string& name, const json& value) {
  if (!value.is_number()) fail_type(name, "a number");
  const auto number = value.get<double>();
  if (!std::isfinite(number)) fail_type(name, "a finite number");
  return number;
}

std::uint32_t read_edge(const std::string& name, const json& value) {
  const std::string expected = "a whole number from 1 to " + std::to_string(max_edge);
  if (!value.is_number_integer()) fail_type(name, expected);
  const auto number = value.get<std::int64_t>();
  if (number < 1 || number > max_edge) fail_type(name, expected);
  return static_cast<std::uint32_t>(number);
}

Resampling read_resampling(const std::string& name, const json& value) {
  constexpr const char* expected =
      "0 (nearest), 1 (lanczos), 2 (bilinear), 3 (bicubic), 4 (box) or 5 (hamming)";
  if (!value.is_number_integer()) fail_type(name, expected);
  const auto number = value.get<std::int64_t>();
  if (number < 0 || number > 5) fail_type(name, expected);
  return static_cast<Resampling>(number);
}

std::array<double, 3> read_channels(const std::string& name, const json& value) {
  if (value.is_number()) {
    const double number = read_number(name, value);
    return {number, number, number};
  }
  if (!value.is_array() || value.size() != 3) fail_type(name, "a number or three numbers");
  std::array<double, 3> result{};
  for (std::size_t i = 0; i < 3; ++i) result[i] = read_number(name, value[i]);
  return result;
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
  fail_type(name, describe(rule));
}

// One parameter: its name, which families have it, and how it is read.
struct ParamReader {
  std::string_view name;
  bool (*belongs_to)(const ImageFamily&);
  void (*read)(const std::string& name, const json&, const ImageFamily&, ImageParams&);
};

bool always(const ImageFamily&) { return true; }
bool with_crop(const ImageFamily& family) { return family.has_crop; }
bool with_crop_pct(const ImageFamily& family) { return family.has_crop_pct; }
bool with_top(const ImageFamily& family) { return family.has_classifier_top; }

// The readers of plain members.
template <auto Member, auto Read>
void read_into(const std::string& name, const json& value, const ImageFamily&, ImageParams& to) {
  to.*Member = Read(name, value);
}

void read_target(const std::string& name, const json& value, const ImageFamily& family,
                 ImageParams& to) {
  to.size = read_size(name, value, family.size_rule);
}

void read_crop(const std::string& name, const json& value, const ImageFamily&, ImageParams& to) {
  to.crop_size = read_size(name, value, SizeRule::exact);
}

// Everything becomes RGB in any case.
void read_and_ignore(const std::string& name, const json& value, const ImageFamily&, ImageParams&) {
  read_bool(name, value);
}

constexpr std::array readers{
    ParamReader{"crop_pct", with_crop_pct, read_into<&ImageParams::crop_pct, read_number>},
    ParamReader{"crop_size", with_crop, read_crop},
    ParamReader{"do_center_crop", with_crop, read_into<&ImageParams::do_center_crop, read_bool>},
    ParamReader{"do_convert_rgb", always, read_and_ignore},
    ParamReader{"do_normalize", always, read_into<&ImageParams::do_normalize, read_bool>},
    ParamReader{"do_rescale", always, read_into<&ImageParams::do_rescale, read_bool>},
    ParamReader{"do_resize", always, read_into<&ImageParams::do_resize, read_bool>},
    ParamReader{"image_mean", always, read_into<&ImageParams::image_mean, read_channels>},
    ParamReader{"image_std", always, read_into<&ImageParams::image_std, read_channels>},
    ParamReader{"include_top", with_top, read_into<&ImageParams::include_top, read_bool>},
    ParamReader{"resample", always, read_into<&ImageParams::resample, read_resampling>},
    ParamReader{"rescale_factor", always, read_into<&ImageParams::rescale_factor, read_number>},
    ParamReader{"rescale_offset", with_top, read_into<&ImageParams::rescale_offset, read_bool>},
    ParamReader{"size", always, read_target},
};

const ParamReader* find_reader(std::string_view name, const ImageFamily& family) {
  const auto found = std::ranges::find(readers, name, &ParamReader::name);
  return found != readers.end() && found->belongs_to(family) ? &*found : nullptr;
}

std::string join(const std::vector<std::string>& names) {
  std::string result;
  for (const std::string& name : names) result += (result.empty() ? "" : ", ") + name;
  return result;
}

std::string known_names(const ImageFamily& family) {
  std::vector<std::string> names;
  for (const ParamReader& reader : readers) {
    if (reader.belongs_to(family)) names.emplace_back(reader.name);
  }
  return join(names);
}

// Names of strangers are quoted in full only when they are harmless.
std::string printable(const std::string& name) {
  constexpr std::size_t longest = 40;
  std::string result = name.substr(0, longest);
  std::ranges::replace_if(
      result, [](char c) { return c < 0x20 || c > 0x7e || c == '/'; }, '?');
  return name.size() > longest ? result + "..." : result;
}

// A step that a file asks for and that we cannot do, such as do_pad.
bool asks_for_a_step(const std::string& name, const json& value) {
  return name.starts_with("do_") && value.is_boolean() && value.get<bool>();
}

bool is_finite_tensor(const ImageParams& params) {
  const double brightest = 255.0 * (params.do_rescale ? params.rescale_factor : 1.0);
  const float value = static_cast<float>(brightest) - 1.0F;
  if (!std::isfinite(value)) return false;
  if (!params.do_normalize) return true;  // mean and deviation are then not looked at
  for (std::size_t c = 0; c < 3; ++c) {
    const auto deviation = static_cast<float>(params.image_std[c]);
    const auto mean = static_cast<float>(params.image_mean[c]);
    if (!std::isfinite((value - mean) / deviation / deviation)) return false;
    if (!std::isfinite(mean / deviation / deviation)) return false;
  }
  return true;
}

void put_size(ResolvedParams& to, const std::string& name, const TargetSize& size) {
  if (size.shortest_edge) {
    to.values[name + ".shortest_edge"] = std::int64_t{*size.shortest_edge};
    return;
  }
  to.values[name + ".height"] = std::int64_t{size.height};
  to.values[name + ".width"] = std::int64_t{size.width};
}

std::vector<double> as_list(const std::array<double, 3>& values) {
  return {values.begin(), values.end()};
}

class ResolvedReader {
 public:
  explicit ResolvedReader(const ResolvedParams& params) : params_(params) {}

  template <typename Value>
  Value get(const std::string& name) const {
    const auto found = params_.values.find(name);
    if (found != params_.values.end()) {
      if (const auto* value = std::get_if<Value>(&found->second)) return *value;
    }
    throw Error(ErrorCode::internal, "preprocessing parameters are not resolved", name);
  }
  std::uint32_t edge(const std::string& name) const {
    return static_cast<std::uint32_t>(get<std::int64_t>(name));
  }
  TargetSize size(const std::string& name) const {
    if (params_.values.contains(name + ".shortest_edge")) {
      return shortest(edge(name + ".shortest_edge"));
    }
    return {std::nullopt, edge(name + ".height"), edge(name + ".width")};
  }
  std::array<double, 3> channels(const std::string& name) const {
    const auto list = get<std::vector<double>>(name);
    if (list.size() != 3) throw Error(ErrorCode::internal, "parameters are not resolved", name);
    return {list[0], list[1], list[2]};
  }

 private:
  const ResolvedParams& params_;
};

}  // namespace

void apply_json(const json& object, ParamSource source, const ImageFamily& family,
                ImageParams& params) {
  std::vector<std::string> unknown;
  for (const auto& [name, value] : object.items()) {
    if (value.is_null()) continue;
    if (const ParamReader* reader = find_reader(name, family)) {
      reader->read(name, value, family, params);
    } else if (source == ParamSource::request || asks_for_a_step(name, value)) {
      unknown.push_back(printable(name));
    }
  }
  if (unknown.empty()) return;
  if (unknown.size() > 5) unknown.resize(5);
  fail("unknown preprocessing parameters for " + std::string(family.name) + ": " + join(unknown) +
       " (known: " + known_names(family) + ")");
}

void check_params(const ImageParams& params, const PreprocessLimits& limits) {
  const auto check_area = [&](const std::string& name, const TargetSize& size) {
    if (!size.shortest_edge && std::uint64_t{size.height} * size.width > limits.max_pixels) {
      fail(name + " exceeds the limit of " + std::to_string(limits.max_pixels) + " pixels");
    }
  };
  if (params.do_resize) check_area("size", params.size);
  if (params.do_center_crop) check_area("crop_size", params.crop_size);
  if (!(params.crop_pct >= 0.01 && params.crop_pct <= 1.0)) {
    fail_type("crop_pct", "from 0.01 to 1");
  }
  if (!is_finite_tensor(params)) {
    fail("rescale_factor, image_mean and image_std lead to values that are not finite");
  }
}

ResolvedParams to_resolved(const ImageParams& params, const ImageFamily& family) {
  ResolvedParams result;
  auto& values = result.values;
  values["do_resize"] = params.do_resize;
  put_size(result, "size", params.size);
  values["resample"] = static_cast<std::int64_t>(params.resample);
  values["do_rescale"] = params.do_rescale;
  values["rescale_factor"] = params.rescale_factor;
  values["do_normalize"] = params.do_normalize;
  values["image_mean"] = as_list(params.image_mean);
  values["image_std"] = as_list(params.image_std);
  if (family.has_crop) {
    values["do_center_crop"] = params.do_center_crop;
    put_size(result, "crop_size", params.crop_size);
  }
  if (family.has_crop_pct) values["crop_pct"] = params.crop_pct;
  if (family.has_classifier_top) {
    values["rescale_offset"] = params.rescale_offset;
    values["include_top"] = params.include_top;
  }
  return result;
}

ImageParams from_resolved(const ResolvedParams& resolved, const ImageFamily& family) {
  const ResolvedReader reader(resolved);
  ImageParams params;
  params.do_resize = reader.get<bool>("do_resize");
  params.size = reader.size("size");
  params.resample = static_cast<Resampling>(reader.edge("resample"));
  params.do_rescale = reader.get<bool>("do_rescale");
  params.rescale_factor = reader.get<double>("rescale_factor");
  params.do_normalize = reader.get<bool>("do_normalize");
  params.image_mean = reader.channels("image_mean");
  params.image_std = reader.channels("image_std");
  if (family.has_crop) {
    params.do_center_crop = reader.get<bool>("do_center_crop");
    params.crop_size = reader.size("crop_size");
  }
  if (family.has_crop_pct) params.crop_pct = reader.get<double>("crop_pct");
  if (family.has_classifier_top) {
    params.rescale_offset = reader.get<bool>("rescale_offset");
    params.include_top = reader.get<bool>("include_top");
  }
  return params;
}

}  // namespace vitrove
