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
constexpr std::array<std::string_view, 10> known_fields{
    "modality",   "input",      "grid_input", "output", "layout",
    "aux_inputs", "aux_params", "dtype",      "name",   "revision"};

// Each parameter's name and place, and the inputs that need it.
struct AuxParamField {
  std::string_view name;
  std::uint32_t AuxParams::*value;
  std::vector<AuxInput> needed_by;
};

const std::vector<AuxParamField>& aux_param_fields() {
  static const std::vector<AuxParamField> fields{
      {"spatial_merge_size",
       &AuxParams::spatial_merge_size,
       {AuxInput::position_ids, AuxInput::window_index, AuxInput::pos_embed_index,
        AuxInput::pos_embed_weight}},
      {"window_size", &AuxParams::window_size, {AuxInput::window_index}},
      {"patch_size", &AuxParams::patch_size, {AuxInput::window_index}},
      {"num_grid_per_side",
       &AuxParams::num_grid_per_side,
       {AuxInput::pos_embed_index, AuxInput::pos_embed_weight}},
  };
  return fields;
}

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

std::uint32_t aux_param_of(const Json& value, const std::string& field) {
  constexpr std::int64_t highest = 65'536;
  if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    if (number >= 1 && number <= highest) return static_cast<std::uint32_t>(number);
  }
  refuse_config("field " + in_quotes(field) + " must be a whole number from 1 to " +
                std::to_string(highest));
}

AuxParams aux_params_of(const Json& config) {
  AuxParams params;
  const auto found = config.find("aux_params");
  if (found == config.end()) return params;
  if (!found->is_object()) refuse_config("field 'aux_params' must be an object");
  const auto& fields = aux_param_fields();
  for (const auto& [name, value] : found->items()) {
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const auto& known) { return known.name == name; });
    if (field == fields.end()) {
      refuse_config("unknown parameter " + in_quotes("aux_params." + name) +
                    " (known: spatial_merge_size, window_size, patch_size, num_grid_per_side)");
    }
    params.*field->value = aux_param_of(value, "aux_params." + name);
  }
  return params;
}

void require_aux_params(const ModelConfig& config) {
  for (const auto& [graph_input, kind] : config.aux_inputs) {
    for (const AuxParamField& field : aux_param_fields()) {
      const bool is_needed =
          std::find(field.needed_by.begin(), field.needed_by.end(), kind) != field.needed_by.end();
      if (!is_needed || config.aux_params.*field.value > 0) continue;
      refuse_config("auxiliary input " + in_quotes(to_string(kind)) + " needs " +
                    in_quotes("aux_params." + std::string(field.name)));
    }
    if (kind == AuxInput::window_index && config.aux_params.window_side() == 0) {
      refuse_config("'aux_params.window_size' is smaller than a block of patches");
    }
  }
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

std::map<std::string, std::uint32_t> AuxParams::given() const {
  std::map<std::string, std::uint32_t> values;
  for (const AuxParamField& field : aux_param_fields()) {
    if (this->*field.value > 0) values.emplace(field.name, this->*field.value);
  }
  return values;
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
  config.aux_params = aux_params_of(parsed);
  require_aux_params(config);
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
