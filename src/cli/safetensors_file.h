// Safetensors on the client's side: reading the server's replies, writing files.
// The format: u64 little-endian length, that many bytes of JSON, then the tensors' bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "vitrove/types.h"

namespace vitrove::cli {

struct NamedRows {
  std::string name;
  DType dtype = DType::float32;
  std::uint32_t dim = 0;
  std::vector<std::byte> rows;
};

// `metadata` goes under __metadata__ key "vitrove". Writes beside the file, then renames; throws
// Error{internal} when that fails.
void write_safetensors(const std::string& path, const std::vector<NamedRows>& tensors,
                       const std::string& metadata);

struct SafetensorsReply {
  std::string metadata;  // JSON text
  std::vector<std::byte> rows;
  std::uint32_t dim = 0;
  DType dtype = DType::float32;
};

// A reply with one tensor. Throws Error{internal} when it is not what a server sends.
SafetensorsReply parse_safetensors(std::string_view body);

// What the metadata of a reply says of its first item, spelled as describe_item() does, with its
// `source`. Throws Error{internal} when it is not what a server sends.
nlohmann::json first_item(const std::string& metadata);

}  // namespace vitrove::cli
