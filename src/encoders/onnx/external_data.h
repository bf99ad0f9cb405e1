// Weights that an ONNX file keeps in other files ("external data"), found by walking the file's
// protobuf fields, so that the fingerprint covers exactly what the model is made of: no more than
// the files it names, and no less, whatever they are called.
//
// Only names are read; the runtime reads the tensors. Pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>

namespace vitrove {

// The `location`s of all external tensors, as they stand in the file: of initializers, of node
// attributes, of subgraphs and of functions. Throws Error{invalid_argument} when the bytes are not
// protobuf.
std::set<std::string> external_data_locations(std::span<const std::byte> onnx_model);

// True for a relative path that stays below the model's directory.
bool is_safe_location(const std::string& location);

}  // namespace vitrove
