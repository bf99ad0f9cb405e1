#include "encoders/onnx/onnx_encoder.h"

#include <algorithm>
#include <utility>

#include "encoders/onnx/graph_check.h"
#include "encoders/onnx/ort_library.h"
#include "encoders/onnx/output_rows.h"
#include "vitrove/error.h"
#include "vitrove/half.h"
#include "vitrove/model_fingerprint.h"

namespace vitrove {
namespace {

std::unique_ptr<Preprocessor> load_model_preprocessor(const std::filesystem::path& directory,
                                                      const EncoderOptions& options) {
  const auto file = directory / "preprocessor_config.json";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) {
    throw Error(ErrorCode::invalid_argument, "the model directory has no preprocessor_config.json",
                file.string());
  }
  return load_preprocessor(file, options.mm_process_config, options.preprocess_limits);
}

OnnxGraph load_graph(const ModelFiles& files, const EncoderOptions& options) {
  auto library = std::make_shared<const OrtLibrary>(options.onnxruntime_library);
  return {std::move(library), files.graph, short_provider_name(options.execution_provider),
          options.threads};
}

// Every colour and some texture, so that a probe is no special case.
RgbImage make_probe_picture(std::uint32_t side) {
  RgbImage image{side, side, std::vector<std::uint8_t>(std::size_t{3} * side * side)};
  for (std::uint32_t y = 0; y < side; ++y) {
    for (std::uint32_t x = 0; x < side; ++x) {
      std::uint8_t* pixel = image.row(y) + std::size_t{3} * x;
      pixel[0] = static_cast<std::uint8_t>(x);
      pixel[1] = static_cast<std::uint8_t>(y);
      pixel[2] = static_cast<std::uint8_t>(x ^ y);
    }
  }
  return image;
}

// The largest that the operator's bounds leave.
PreprocessedItem make_probe_item(const Preprocessor& preprocessor) {
  const ResolvedParams params = preprocessor.resolve(Modality::image, {});
  for (const std::uint32_t side : {224U, 112U, 56U}) {
    try {
      return preprocessor.run(make_probe_picture(side), params);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::too_large) throw;
    }
  }
  return preprocessor.run(make_probe_picture(28), params);
}

// True when each dimension that the graph fixes is the item's. `declared` has one dimension more in
// front where items are stacked.
bool shape_fits(std::span<const std::int64_t> declared, std::span<const std::int64_t> item,
                RowLayout layout) {
  if (declared.empty()) return true;
  const std::size_t stacked = layout == RowLayout::packed ? 0 : 1;
  if (declared.size() != item.size() + stacked) return false;
  for (std::size_t i = 0; i < item.size(); ++i) {
    const std::int64_t wanted = declared[i + stacked];
    if (wanted >= 0 && wanted != item[i]) return false;
  }
  return true;
}

std::vector<float> as_floats(const OutputTensor& output) {
  switch (output.type) {
    case ElementType::float32: {
      std::vector<float> floats(output.bytes.size() / 4);
      rows_to_float32(output.bytes, DType::float32, floats);
      return floats;
    }
    case ElementType::float16:
    case ElementType::bfloat16: {
      const auto dtype = output.type == ElementType::float16 ? DType::float16 : DType::bfloat16;
      std::vector<float> floats(output.bytes.size() / 2);
      rows_to_float32(output.bytes, dtype, floats);
      return floats;
    }
    default:
      throw Error(ErrorCode::invalid_argument, "the output's elements are no numbers of ours");
  }
}

}  // namespace

OnnxEncoder::OnnxEncoder(const std::filesystem::path& directory, const EncoderOptions& options)
    : OnnxEncoder(directory, options, nullptr) {}

OnnxEncoder::OnnxEncoder(const std::filesystem::path& directory, const EncoderOptions& options,
                         std::unique_ptr<Preprocessor> preprocessor)
    : config_(load_model_config(directory)),
      preprocessor_(preprocessor ? std::move(preprocessor)
                                 : load_model_preprocessor(directory, options)),
      files_(find_model_files(directory)),
      graph_(load_graph(files_, options)) {
  check_graph(graph_, config_);
  one_by_one_ = takes_one_item(graph_, config_);
  info_.name = config_.name;
  info_.revision = config_.revision;
  info_.dtype = config_.dtype;
  info_.row_meaning = to_string(config_.layout);
  info_.modalities = config_.modalities;
  const auto& shape = graph_.find_output(config_.output)->shape;
  if (!shape.empty() && shape[dim_axis(config_.layout)] > 0) {
    info_.dim = static_cast<std::uint32_t>(shape[dim_axis(config_.layout)]);
  }
  probe();
  info_.fingerprint = fingerprint(short_provider_name(options.execution_provider));
  require_unchanged(files_);
}

void OnnxEncoder::probe() {
  const bool takes_images = std::find(config_.modalities.begin(), config_.modalities.end(),
                                      Modality::image) != config_.modalities.end();
  if (!takes_images) {
    if (info_.dim > 0) return;
    throw Error(ErrorCode::invalid_argument,
                "model.onnx leaves the dim of output '" + config_.output + "' open");
  }
  const PreprocessedItem item = make_probe_item(*preprocessor_);
  if (config_.layout == RowLayout::packed && !item.grid) {
    throw Error(ErrorCode::invalid_argument,
                "vitrove.json: layout 'packed' needs grids, which preprocessing family '" +
                    std::string(preprocessor_->family()) + "' does not make");
  }
  batch_class(item);
  try {
    const PreprocessedItem* const batch[] = {&item};
    learn(item, encode(batch).front());
  } catch (const Error& error) {
    throw Error(ErrorCode::invalid_argument,
                std::string("the model cannot encode a picture: ") + error.what(), error.detail());
  }
}

void OnnxEncoder::learn(const PreprocessedItem& item, const EncoderOutput& output) {
  const std::size_t row_bytes = output.bytes.size() / output.rows;
  info_.dim = static_cast<std::uint32_t>(row_bytes / element_size(config_.dtype));
  if (info_.dim == 0) throw Error(ErrorCode::internal, "its rows are empty");
  if (config_.layout == RowLayout::packed) {
    patches_per_row_ = patch_count(required_grid(item)) / output.rows;
  }
}

Digest256 OnnxEncoder::fingerprint(const std::string& provider) const {
  FingerprintParts parts;
  parts.files = digest_model_files(files_);
  parts.settings = {
      {"kind", "onnx"},
      {"input", config_.input},
      {"grid_input", config_.grid_input.value_or("")},
      {"output", config_.output},
      {"layout", std::string(to_string(config_.layout))},
      {"dtype", std::string(to_string(config_.dtype))},
      {"precision", std::string(to_string(graph_.find_output(config_.output)->type))},
      {"execution_provider", provider},
      {"preprocessor", std::string(preprocessor_->family())},
  };
  for (const auto& [name, kind] : config_.aux_inputs) {
    parts.settings.emplace("aux_inputs." + name, to_string(kind));
  }
  for (const auto& [name, value] : config_.aux_params.given()) {
    parts.settings.emplace("aux_params." + name, std::to_string(value));
  }
  return model_fingerprint(parts);
}

std::optional<std::uint32_t> OnnxEncoder::token_count(const PreprocessedItem& item) const {
  if (config_.layout == RowLayout::packed) {
    if (patches_per_row_ == 0 || !item.grid) return std::nullopt;
    return static_cast<std::uint32_t>(patch_count(*item.grid) / patches_per_row_);
  }
  const auto& shape = graph_.find_output(config_.output)->shape;
  if (shape.empty()) return std::nullopt;
  std::int64_t rows = 1;
  const std::size_t first = config_.layout == RowLayout::tokens ? 1 : 2;
  const std::size_t last = config_.layout == RowLayout::tokens ? 1 : 3;
  for (std::size_t axis = first; axis <= last; ++axis) {
    if (shape[axis] <= 0) return std::nullopt;
    rows *= shape[axis];
  }
  return static_cast<std::uint32_t>(rows);
}

std::string OnnxEncoder::batch_class(const PreprocessedItem& item) const {
  const auto& shape = item.primary().shape;
  const GraphTensor& input = *graph_.find_input(config_.input);
  if (!shape_fits(input.shape, shape, config_.layout)) {
    throw Error(ErrorCode::invalid_argument,
                "preprocessing made a tensor of " + describe_shape(shape) + ", but input '" +
                    input.name + "' of the model takes " + describe_shape(input.shape));
  }
  if (config_.layout != RowLayout::packed) return describe_shape(shape);
  // Items of any length pack together, as long as their patches are of one size.
  return describe_shape(std::span(shape).subspan(std::min<std::size_t>(1, shape.size())));
}

std::vector<InputTensor> OnnxEncoder::make_inputs(Batch batch) const {
  const ElementType type = graph_.find_input(config_.input)->type;
  std::vector<InputTensor> inputs;
  inputs.push_back(config_.layout == RowLayout::packed ? pack_items(batch, config_.input, type)
                                                       : stack_items(batch, config_.input, type));
  if (config_.grid_input) {
    const std::string& name = *config_.grid_input;
    inputs.push_back(grid_tensor(batch, name, graph_.find_input(name)->type));
  }
  for (const auto& [name, kind] : config_.aux_inputs) {
    inputs.push_back(
        aux_tensor(kind, config_.aux_params, batch, name, graph_.find_input(name)->type));
  }
  return inputs;
}

void OnnxEncoder::require_dim(const OutputTensor& output) const {
  if (info_.dim == 0 || output.shape.size() != output_rank(config_.layout)) return;
  if (output.shape[dim_axis(config_.layout)] == info_.dim) return;
  throw Error(ErrorCode::internal, "the encoder's output has another dim than it had at start");
}

std::vector<EncoderOutput> OnnxEncoder::encode_together(Batch batch) const {
  const OutputTensor output = graph_.run(make_inputs(batch), config_.output);
  require_dim(output);
  switch (config_.layout) {
    case RowLayout::tokens:
      return split_tokens(output, batch.size(), config_.dtype);
    case RowLayout::packed:
      return split_packed(output, batch, config_.dtype);
    case RowLayout::chw:
      return split_chw(output, batch.size(), config_.dtype);
  }
  return {};
}

std::vector<EncoderOutput> OnnxEncoder::encode(std::span<const PreprocessedItem* const> batch) {
  if (batch.empty()) return {};
  if (!one_by_one_) return encode_together(batch);
  std::vector<EncoderOutput> outputs;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    outputs.push_back(std::move(encode_together(batch.subspan(i, 1)).front()));
  }
  return outputs;
}

std::vector<float> OnnxEncoder::run_output(const PreprocessedItem& item,
                                           const std::string& output) const {
  if (graph_.find_output(output) == nullptr) {
    throw Error(ErrorCode::invalid_argument, "the graph has no output '" + output + "'");
  }
  const PreprocessedItem* const batch[] = {&item};
  return as_floats(graph_.run(make_inputs(batch), output));
}

}  // namespace vitrove
