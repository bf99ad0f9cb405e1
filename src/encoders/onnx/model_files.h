// The weights of a model directory: model.onnx and the files it keeps tensors in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "vitrove/digest.h"

namespace vitrove {

// Which file stands behind a path, and as of when: another one, or a rewritten one, differs.
struct FileState {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;

  bool operator==(const FileState&) const = default;
};

struct ModelFiles {
  std::filesystem::path graph;
  std::set<std::string> external;  // relative to the model's directory
  // Of every file, taken before anything was read from it.
  std::map<std::filesystem::path, FileState> states;
};

// Throws Error{invalid_argument} when a file is missing, or named outside of the directory.
ModelFiles find_model_files(const std::filesystem::path& directory);

// Weights are loaded first and hashed later, by path. Throws Error{invalid_argument} when a file is
// no longer what find_model_files() saw: what was loaded may then not be what was hashed.
void require_unchanged(const ModelFiles& files);

// Content digests by role, for the fingerprint. The directory's own name plays no part.
std::map<std::string, Digest256> digest_model_files(const ModelFiles& files);

}  // namespace vitrove
