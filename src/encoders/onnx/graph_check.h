// Does a graph keep what vitrove.json says about it? Asked once, at load, so that a mistake in a
// model directory is one clear line at start and not a failure of every request.
#pragma once

#include "encoders/onnx/model_config.h"
#include "encoders/onnx/onnx_graph.h"

namespace vitrove {

// Throws Error{invalid_argument} naming what does not fit: a missing input or output, an input that
// nothing feeds, a type or rank that the layout does not allow.
void check_graph(const OnnxGraph& graph, const ModelConfig& config);

// True when the graph takes one item at a time: its first dimension is a number and not open.
bool takes_one_item(const OnnxGraph& graph, const ModelConfig& config);

}  // namespace vitrove
