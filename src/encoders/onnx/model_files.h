// The weights of a model directory: model.onnx and the files it keeps tensors in.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "vitrove/digest.h"

namespace vitrove {

struct ModelFiles {
  std::filesystem::path graph;
  std::set<std::string> external;  // relative to the model's directory
};

// Throws Error{invalid_argument} when a file is missing, or named outside of the directory.
ModelFiles find_model_files(const std::filesystem::path& directory);

// Content digests by role, for the fingerprint. The directory's own name plays no part.
std::map<std::string, Digest256> digest_model_files(const ModelFiles& files);

}  // namespace vitrove
