#include "encoders/onnx/model_config.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "encoders/onnx/config_error.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

using Json = nlohmann::json;

constexpr std::array layouts{RowLayout::tokens, RowLayout::packed, RowLayout::chw};
constexpr std::array aux_kinds{AuxInput::position_ids,    AuxInput::cu_seqlens,
                               AuxInput::segment_ids,     AuxInput::window_index,
                               AuxInput::pos_embed_index, AuxInput::pos_embed_weight};
constexpr std::array modalities{Modality::image, Modality::video, Modality::audio};
constexpr std::array dtypes{DType::float32, DType::float16, DType::bfloat16};
constexpr std::array<std::string_view, 9> known_fields{"modality", "input",  "grid_input",
                                                       "output",   "layout", "aux_inputs",
                                                       "dtype",    "name",   "revision"};

template <typename Values>
std::string list_of(const Values& values) {
  std::string list;
  for (const auto& value : values) {
    if (!list.empty()) list += ", ";
    if constexpr (std::is_convertible_v<decltype(value), std::string_view>) {
      list += value;
    } else {
      list += to_string(value);
    }
  }
  return list;
}

std::string text_of(const Json& value, const std::string& field) {
  if (!value.is_string()) refuse_config("field " + in_quotes(field) + " must be a string");
  auto text = value.get<std::string>();
  if (text.find('\0') != std::string::npos)
    refuse_config("field " + in_quotes(field) + " holds a NUL");
  return text;
}

std::string required_text(const Json& config, const std::string& field) {
  const auto found = config.find(field);
  if (found == config.end()) refuse_config("field " + in_quotes(field) + " is missing");
  std::string text = text_of(*found, field);
  if (text.empty()) refuse_config("field " + in_quotes(field) + " is empty");
  return text;
}

std::string optional_text(const Json& config, const std::string& field) {
  const auto found = config.find(field);
  return found == config.end() ? std::string() : text_of(*found, field);
}

// The one of `values` that is spelled like the text.
template <typename Values>
typename Values::value_type choice(const std::string& text, const std::string& field,
                                   const Values& values) {
  for (const auto value : values) {
    if (to_string(value) == text) return value;
  }
  refuse_config("field " + in_quotes(field) + " cannot be " + in_quotes(text) +
                " (known: " + list_of(values) + ")");
}

void refuse_unknown_fields(const Json& config) {
  for (const auto& [field, value] : config.items()) {
    if (std::find(known_fields.begin(), known_fields.end(), field) == known_fields.end()) {
      refuse_config("unknown field " + in_quotes(field) + " (known: " + list_of(known_fields) +
                    ")");
    }
  }
}

std::vector<Modality> modalities_of(const Json& config) {
  const std::string field = "modality";
  const auto found = config.find(field);
  if (found == config.end()) refuse_config("field 'modality' is missing");
  if (found->is_string()) return {choice(found->get<std::string>(), field, modalities)};
  if (!found->is_array()) refuse_config("field 'modality' must be a string or a list of strings");
  if (found->empty()) refuse_config("field 'modality' is an empty list");
  std::vector<Modality> listed;
  for (const Json& element : *found) {
    if (!element.is_string())
      refuse_config("field 'modality' must be a string or a list of strings");
    const Modality modality = choice(element.get<std::string>(), field, modalities);
    if (std::find(listed.begin(), listed.end(), modality) != listed.end()) {
      refuse_config("field 'modality' names " + in_quotes(to_string(modality)) + " twice");
    }
    listed.push_back(modality);
  }
  return listed;
}

std::map<std::string, AuxInput> aux_inputs_of(const Json& config) {
  const auto found = config.find("aux_inputs");
  if (found == config.end()) return {};
  if (!found->is_object()) refuse_config("field 'aux_inputs' must be an object");
  std::map<std::string, AuxInput> aux;
  for (const auto& [graph_input, kind] : found->items()) {
    const std::string field = "aux_inputs." + graph_input;
    aux.emplace(graph_input, choice(text_of(kind, field), field, aux_kinds));
  }
  return aux;
}

// One graph input cannot be fed from two places.
void refuse_shared_inputs(const ModelConfig& config) {
  if (config.grid_input == config.input)
    refuse_config("'input' and 'grid_input' name one graph input");
  for (const auto& [graph_input, kind] : config.aux_inputs) {
    if (graph_input == config.input || graph_input == config.grid_input) {
      refuse_config("'aux_inputs' names " + in_quotes(graph_input) + ", which is fed already");
    }
  }
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(ErrorCode::invalid_argument, "the model directory has no readable vitrove.json",
                path.string());
  }
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::string_view to_string(RowLayout layout) {
  switch (layout) {
    case RowLayout::tokens:
      return "tokens";
    case RowLayout::packed:
      return "packed";
    case RowLayout::chw:
      return "chw";
  }
  return "unknown";
}

std::string_view to_string(AuxInput kind) {
  switch (kind) {
    case AuxInput::position_ids:
      return "position_ids";
    case AuxInput::cu_seqlens:
      return "cu_seqlens";
    case AuxInput::segment_ids:
      return "segment_ids";
    case AuxInput::window_index:
      return "window_index";
    case AuxInput::pos_embed_index:
      return "pos_embed_index";
    case AuxInput::pos_embed_weight:
      return "pos_embed_weight";
  }
  return "unknown";
}

ModelConfig parse_model_config(std::string_view json) {
  Json parsed;
  try {
    parsed = Json::parse(json);
  } catch (const Json::exception& error) {
    refuse_config("not valid JSON", error.what());
  }
  if (!parsed.is_object()) refuse_config("not a JSON object");
  refuse_unknown_fields(parsed);

  ModelConfig config;
  config.modalities = modalities_of(parsed);
  config.input = required_text(parsed, "input");
  if (parsed.contains("grid_input")) config.grid_input = required_text(parsed, "grid_input");
  config.output = required_text(parsed, "output");
  config.layout = choice(required_text(parsed, "layout"), "layout", layouts);
  config.aux_inputs = aux_inputs_of(parsed);
  if (parsed.contains("dtype")) {
    config.dtype = choice(required_text(parsed, "dtype"), "dtype", dtypes);
  }
  config.name = optional_text(parsed, "name");
  config.revision = optional_text(parsed, "revision");
  refuse_shared_inputs(config);
  return config;
}

ModelConfig load_model_config(const std::filesystem::path& directory) {
  ModelConfig config = parse_model_config(read_file(directory / "vitrove.json"));
  if (config.name.empty()) {
    const auto whole = directory.lexically_normal();
    config.name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  }
  return config;
}

}  // namespace vitrove
