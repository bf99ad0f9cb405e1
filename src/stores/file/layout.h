// Where things stand below the root, and which names are ours.
//
// Names come from digests and random tokens only and are at most 80 bytes long, whatever a model or
// a tenant is called (field cases B48, B89).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "stores/file/process_identity.h"
#include "vitrove/embedding_key.h"

namespace vitrove::file {

class Layout {
 public:
  explicit Layout(const std::filesystem::path& root)
      : root_(root.lexically_normal().string()), base_(root_ + "/v1") {}

  const std::string& root() const { return root_; }
  const std::string& base() const { return base_; }  // the root of the two-level fan-out
  std::string state_path() const { return base_ + "/.vitrove-state"; }
  std::string directory_of(const EmbeddingKey& key) const;
  std::string path_of(const EmbeddingKey& key) const;
  std::string temporary_path(const EmbeddingKey& key, const ProcessIdentity& writer,
                             std::uint64_t number) const;
  std::string claim_path(const EmbeddingKey& key) const;

 private:
  std::string root_;
  std::string base_;
};

// "a": a directory of the fan-out.
bool is_fan_out_name(std::string_view name);

// The key of a value's file name, when it stands in the directories it belongs to.
std::optional<EmbeddingKey> parse_value_name(std::string_view first, std::string_view second,
                                             std::string_view name);

// Whether it is the name of a claim on what belongs in these directories.
bool is_claim_name(std::string_view first, std::string_view second, std::string_view name);

// Who writes the temporary file of this name: so its leftovers are known for what they are,
// whatever becomes of the state file.
std::optional<ProcessIdentity> parse_temporary_name(std::string_view name);

}  // namespace vitrove::file
