#include "encoders/onnx/graph_check.h"

#include <string>
#include <string_view>

#include "encoders/onnx/batch_inputs.h"
#include "encoders/onnx/config_error.h"
#include "encoders/onnx/output_rows.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

std::string names_of(const std::vector<GraphTensor>& tensors) {
  std::string names;
  for (const GraphTensor& tensor : tensors) names += (names.empty() ? "" : ", ") + tensor.name;
  return names;
}

const GraphTensor& require_input(const OnnxGraph& graph, const std::string& name) {
  const GraphTensor* input = graph.find_input(name);
  if (input == nullptr) {
    refuse_config("the graph has no input " + in_quotes(name) +
                  " (it has: " + names_of(graph.inputs()) + ")");
  }
  return *input;
}

void check_floats(const GraphTensor& input) {
  if (input.type == ElementType::float32 || input.type == ElementType::float16) return;
  refuse_config("input " + in_quotes(input.name) + " takes " + std::string(to_string(input.type)) +
                "; float32 and float16 can be fed");
}

void check_integers(const GraphTensor& input) {
  if (input.type == ElementType::int32 || input.type == ElementType::int64) return;
  refuse_config("input " + in_quotes(input.name) + " takes " + std::string(to_string(input.type)) +
                "; int32 and int64 can be fed");
}

void check_features(const GraphTensor& input, RowLayout layout) {
  check_floats(input);
  if (layout == RowLayout::packed || input.shape.empty()) return;
  if (input.shape.front() > 1) {
    refuse_config("input " + in_quotes(input.name) + " takes exactly " +
                  std::to_string(input.shape.front()) +
                  " items a run; export it with an open batch dimension, or with 1");
  }
}

void check_aux_inputs(const OnnxGraph& graph, const ModelConfig& config) {
  for (const auto& [name, kind] : config.aux_inputs) {
    const GraphTensor& input = require_input(graph, name);
    if (kind == AuxInput::pos_embed_weight) {
      check_floats(input);
    } else {
      check_integers(input);
    }
  }
}

void refuse_unfed_inputs(const OnnxGraph& graph, const ModelConfig& config) {
  for (const GraphTensor& input : graph.inputs()) {
    if (input.name == config.input || input.name == config.grid_input) continue;
    if (config.aux_inputs.contains(input.name)) continue;
    refuse_config("nothing feeds the graph's input " + in_quotes(input.name) +
                  "; name it in grid_input or aux_inputs");
  }
}

void check_output(const OnnxGraph& graph, const ModelConfig& config) {
  const GraphTensor* output = graph.find_output(config.output);
  if (output == nullptr) {
    refuse_config("the graph has no output " + in_quotes(config.output) +
                  " (it has: " + names_of(graph.outputs()) + ")");
  }
  if (output->type != ElementType::float32 && output->type != ElementType::float16 &&
      output->type != ElementType::bfloat16) {
    refuse_config("output " + in_quotes(config.output) + " gives " +
                  std::string(to_string(output->type)) + "; rows are floating-point numbers");
  }
  if (output->shape.empty() || output->shape.size() == output_rank(config.layout)) return;
  refuse_config("output " + in_quotes(config.output) + " has shape " +
                describe_shape(output->shape) + ", which is not layout " +
                in_quotes(to_string(config.layout)));
}

}  // namespace

void check_graph(const OnnxGraph& graph, const ModelConfig& config) {
  check_features(require_input(graph, config.input), config.layout);
  if (config.grid_input) check_integers(require_input(graph, *config.grid_input));
  check_aux_inputs(graph, config);
  refuse_unfed_inputs(graph, config);
  check_output(graph, config);
}

bool takes_one_item(const OnnxGraph& graph, const ModelConfig& config) {
  const GraphTensor& input = require_input(graph, config.input);
  return !input.shape.empty() && input.shape.front() >= 0;
}

}  // namespace vitrove
