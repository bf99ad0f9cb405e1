// Model fingerprint: the digest of a model's weights and of every setting that can change its
// output. It namespaces every key (field cases B26, B38) and stands in every stored header.
//
// Weight files are hashed whole, by content and not by name, whenever a model is loaded.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "vitrove/digest.h"

namespace vitrove {

struct FingerprintParts {
  // Role ("model.onnx", "weights.data") and content digest of each weights file.
  std::map<std::string, Digest256> files;
  // Output name, precision, execution provider, layout, auxiliary inputs, ...
  std::map<std::string, std::string> settings;
};

Digest256 model_fingerprint(const FingerprintParts& parts);

// SHA-256 of a file's content; reading and hashing overlap. Throws Error{not_found} when it is not
// a regular file that can be read.
Digest256 digest_file(const std::filesystem::path& path);

}  // namespace vitrove
