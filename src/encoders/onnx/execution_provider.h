// Execution providers by name: "cpu" is always there, the others as the library was built.
#pragma once

#include <string>

#include "encoders/onnx/ort_library.h"

struct OrtSessionOptions;

namespace vitrove {

// Throws Error{invalid_argument} when the library does not offer the provider (the message lists
// what it offers) or cannot set it up.
void append_execution_provider(const OrtLibrary& library, OrtSessionOptions* options,
                               const std::string& provider);

}  // namespace vitrove
