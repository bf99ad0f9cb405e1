// Stores as the command line opens them, and values as it reads them: checked like the cache would.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrove/embedding_store.h"
#include "vitrove/side_data.h"
#include "vitrove/value_format.h"

namespace vitrove::cli {

// The store of --store, or the default file store. Throws Error.
std::unique_ptr<EmbeddingStore> open_store(const std::string& url);

// Throws Error{invalid_argument}.
EmbeddingKey parse_key(const std::string& text);

struct StoredValue {
  ValueHeader header;
  std::vector<std::byte> bytes;  // the whole object
  SideData side;

  std::span<const std::byte> rows() const {
    return std::span(bytes).subspan(value_header_size, header.payload_bytes());
  }
};

// Reads and checks header, key, checksum and side data, following one alias. Nothing when absent;
// throws Error{internal} naming what is wrong with the value, Error{unavailable} for a store fault.
std::optional<StoredValue> read_value(EmbeddingStore& store, const EmbeddingKey& key);

// The header alone as JSON text, for stat and ls --json.
std::string describe_header(const ValueHeader& header);

}  // namespace vitrove::cli
