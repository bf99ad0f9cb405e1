// Stores as the command line opens them, and values as it reads them: checked like the cache would.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>

#include "vitrove/embedding_store.h"
#include "vitrove/embedding_store_factory.h"
#include "vitrove/error.h"
#include "vitrove/side_data.h"
#include "vitrove/value_format.h"

namespace vitrove::cli {

// --store of a command that looks into one.
CLI::Option* add_store_option(CLI::App& command, std::string& store);

// The URL of --store, or that of the default file store when it is empty. Throws Error.
std::string store_url(const std::string& url);

// Nothing when it is no URL of a file store.
std::optional<StoreUrl> file_store_url(const std::string& url);

// To look: of a file store a guest, who evicts nothing and makes nothing. Throws Error.
std::unique_ptr<EmbeddingStore> look_at_store(const std::string& url);

// To write. A file store that holds more than the URL's capacity is Error{invalid_argument}: it
// would lose the rest.
std::unique_ptr<EmbeddingStore> open_store(const std::string& url);

// "denied (Permission denied)"
std::string words_for(const StoreResult& result);

// What went wrong, why if the store can tell, and what to do about it.
Error store_fault(const EmbeddingStore& store, const StoreResult& result);
Error no_such_key(const EmbeddingKey& key);

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

// The header alone, for stat and ls --json.
nlohmann::json describe_header(const ValueHeader& header);

// What `get` and `encode` say of an embedding, wherever it comes from.
nlohmann::json describe_item(const EmbeddingKey& key, const ValueHeader& header,
                             const SideData& side);

}  // namespace vitrove::cli
