#include "cli/store_access.h"

#include <nlohmann/json.hpp>

#include "server/server_config.h"
#include "vitrove/embedding_store_factory.h"
#include "vitrove/error.h"

namespace vitrove::cli {
namespace {

constexpr std::chrono::seconds patience{30};

StoreContext store_context() {
  StoreContext context;
  context.deadline = std::chrono::steady_clock::now() + patience;
  context.trace_id = "cli";
  return context;
}

[[noreturn]] void throw_fault(const StoreResult& result) {
  throw Error(ErrorCode::unavailable, "the store failed: " + std::string(to_string(result.status)));
}

void check_value_bytes(const EmbeddingKey& key, StoredValue& value) {
  Reject reject = parse_header(value.bytes, value.bytes.size(), value.header);
  if (reject == Reject::none && value.header.key != key) reject = Reject::key;
  if (reject == Reject::none) {
    PayloadChecksum checksum;
    checksum.update(std::span(value.bytes).subspan(value_header_size));
    if (checksum.finish() != value.header.payload_checksum) reject = Reject::payload_checksum;
  }
  if (reject == Reject::none) {
    auto side = SideData::decode(
        std::span(value.bytes).subspan(value_header_size + value.header.payload_bytes()));
    if (side) {
      value.side = *std::move(side);
    } else {
      reject = Reject::side_data;
    }
  }
  if (reject != Reject::none)
    throw Error(ErrorCode::internal, "the stored value of " + key.text() +
                                         " is damaged: " + std::string(to_string(reject)));
}

std::optional<StoredValue> read_one(EmbeddingStore& store, const EmbeddingKey& key) {
  const StoreContext context = store_context();
  const StoreResult found = store.batch_is_exist(std::span(&key, 1), context).front();
  if (found.status == StoreStatus::absent) return std::nullopt;
  if (!found.ok()) throw_fault(found);

  StoredValue value;
  value.bytes.resize(found.size);
  const MutableBuffer buffer(value.bytes);
  const StoreResult got =
      store.batch_get(std::span(&key, 1), std::span(&buffer, 1), context).front();
  if (got.status == StoreStatus::absent) return std::nullopt;  // gone in between
  if (!got.ok()) throw_fault(got);
  check_value_bytes(key, value);
  return value;
}

}  // namespace

std::unique_ptr<EmbeddingStore> open_store(const std::string& url) {
  ServerConfig config;
  if (!url.empty()) config.stores = {url};
  const std::vector<std::string> urls = resolve_store_urls(config);
  if (urls.empty()) throw Error(ErrorCode::invalid_argument, "no store given");
  return EmbeddingStoreFactory::with_builtins().create_backend(urls.front());
}

EmbeddingKey parse_key(const std::string& text) {
  const auto key = EmbeddingKey::parse(text);
  if (!key) throw Error(ErrorCode::invalid_argument, "not a key (vt1- and 64 hex digits): " + text);
  return *key;
}

std::optional<StoredValue> read_value(EmbeddingStore& store, const EmbeddingKey& key) {
  auto value = read_one(store, key);
  if (!value || value->header.kind != ValueKind::alias) return value;
  if (!value->side.alias_target)
    throw Error(ErrorCode::internal, "the alias " + key.text() + " points nowhere");
  return read_one(store, *value->side.alias_target);
}

std::string describe_header(const ValueHeader& header) {
  return nlohmann::json{{"key", header.key.text()},
                        {"kind", header.kind == ValueKind::alias ? "alias" : "embedding"},
                        {"modality", to_string(header.modality)},
                        {"tokens", header.rows},
                        {"dim", header.dim},
                        {"dtype", to_string(header.dtype)},
                        {"model", to_hex(header.model_fingerprint)},
                        {"bytes", header.value_bytes()},
                        {"side_bytes", header.side_bytes},
                        {"created_us", header.created_us},
                        {"encode_ms", static_cast<double>(header.encode_cost_us) / 1000.0}}
      .dump();
}

}  // namespace vitrove::cli
