#include "cli/store_access.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include <nlohmann/json.hpp>

#include "base/environment.h"
#include "cli/output.h"
#include "cli/store_advice.h"
#include "server/server_config.h"
#include "vitrove/file_store.h"
#include "vitrove/units.h"

namespace vitrove::cli {
namespace {

constexpr std::chrono::seconds patience{30};

StoreContext store_context() {
  StoreContext context;
  context.deadline = std::chrono::steady_clock::now() + patience;
  context.trace_id = "cli";
  return context;
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
  if (!found.ok()) throw store_fault(store, found);

  StoredValue value;
  value.bytes.resize(found.size);
  const MutableBuffer buffer(value.bytes);
  const StoreResult got =
      store.batch_get(std::span(&key, 1), std::span(&buffer, 1), context).front();
  if (got.status == StoreStatus::absent) return std::nullopt;  // gone in between
  if (!got.ok()) throw store_fault(store, got);
  check_value_bytes(key, value);
  return value;
}

// Of a variable meant for commands that take several. A path may have blanks, a list has schemes.
void refuse_several_stores(const std::string& text) {
  std::istringstream in(text);
  std::size_t urls = 0;
  std::size_t words = 0;
  for (std::string word; in >> word; ++words) urls += word.find("://") != std::string::npos ? 1 : 0;
  if (words < 2 || urls < words) return;
  throw Error(ErrorCode::invalid_argument,
              "one store is expected and not " + std::to_string(urls) +
                  " (is it VITROVE_STORE that lists them?): name one with --store");
}

}  // namespace

CLI::Option* add_store_option(CLI::App& command, std::string& store) {
  return command.add_option("--store", store, "the store (default: the default file store)")
      ->type_name("URL");
}

std::string store_url(const std::string& url) {
  refuse_several_stores(url);
  ServerConfig config;
  if (!url.empty()) config.stores = {url};
  const std::vector<std::string> urls = resolve_store_urls(config);
  if (urls.empty())
    throw Error(ErrorCode::invalid_argument,
                "'none' is no store to look into: name one, such as file:///var/lib/vitrove");
  return urls.front();
}

std::optional<StoreUrl> file_store_url(const std::string& url) {
  constexpr std::string_view scheme = "file:";
  const bool is_file = url.size() >= scheme.size() &&
                       std::ranges::equal(url.substr(0, scheme.size()), scheme, {},
                                          [](unsigned char c) { return std::tolower(c); });
  if (!is_file) return std::nullopt;
  return StoreUrl::parse(url);
}

std::unique_ptr<EmbeddingStore> look_at_store(const std::string& url) {
  const std::string full = store_url(url);
  std::map<std::string, std::string> options;
  if (const auto parsed = file_store_url(full); parsed && !parsed->options.contains("guest"))
    options["guest"] = "true";
  return EmbeddingStoreFactory::with_builtins().create_backend(full, options);
}

namespace {

// Bytes that the store of the URL holds already, as its servers have written down.
std::uint64_t held_bytes(const std::string& full) {
  try {
    return look_at_store(full)->health().bytes.value_or(0);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unavailable) return 0;  // no store yet
    throw;
  }
}

}  // namespace

std::unique_ptr<EmbeddingStore> open_store(const std::string& url) {
  const std::string full = store_url(url);
  if (const auto parsed = file_store_url(full)) {
    StoreOptions options(parsed->options);
    const std::uint64_t capacity = options.bytes("capacity", FileStoreOptions{}.capacity);
    const std::uint64_t held = held_bytes(full);
    if (held > capacity)
      throw Error(ErrorCode::invalid_argument,
                  "the store holds " + format_bytes(held) + ", and would lose what is beyond a " +
                      "capacity of " + format_bytes(capacity) +
                      ": give the URL the capacity= that its servers have");
  }
  return EmbeddingStoreFactory::with_builtins().create_backend(full);
}

std::string words_for(const StoreResult& result) {
  std::string words(to_string(result.status));
  if (result.error_number != 0) words += " (" + errno_text(result.error_number) + ")";
  return words;
}

Error store_fault(const EmbeddingStore& store, const StoreResult& result) {
  std::string reason = words_for(result);
  const std::string detail = store.health().detail;
  if (!detail.empty()) reason += "; " + detail;
  const std::string_view advice = advice_for(store.name(), reason);
  if (!advice.empty()) reason += ". " + std::string(advice);
  return Error(ErrorCode::unavailable,
               "the " + std::string(store.name()) + " store failed: " + reason);
}

Error no_such_key(const EmbeddingKey& key) {
  return Error(ErrorCode::not_found, "there is no " + key.text() + " in this store");
}

EmbeddingKey parse_key(const std::string& text) {
  const auto key = EmbeddingKey::parse(text);
  if (!key)
    throw Error(ErrorCode::invalid_argument,
                "'" + shown(text, 100) +
                    "' is not a key: vt1- and 64 hex digits, as `vitrove ls` lists them");
  return *key;
}

std::optional<StoredValue> read_value(EmbeddingStore& store, const EmbeddingKey& key) {
  auto value = read_one(store, key);
  if (!value || value->header.kind != ValueKind::alias) return value;
  if (!value->side.alias_target)
    throw Error(ErrorCode::internal, "the alias " + key.text() + " points nowhere");
  return read_one(store, *value->side.alias_target);
}

nlohmann::json describe_header(const ValueHeader& header) {
  return {{"key", header.key.text()},
          {"kind", header.kind == ValueKind::alias ? "alias" : "embedding"},
          {"modality", to_string(header.modality)},
          {"tokens", header.rows},
          {"dim", header.dim},
          {"dtype", to_string(header.dtype)},
          {"model", to_hex(header.model_fingerprint)},
          {"bytes", header.value_bytes()},
          {"side_bytes", header.side_bytes},
          {"created_us", header.created_us},
          {"encode_ms", static_cast<double>(header.encode_cost_us) / 1000.0}};
}

nlohmann::json describe_item(const EmbeddingKey& key, const ValueHeader& header,
                             const SideData& side) {
  nlohmann::json item{{"key", key.text()},
                      {"modality", to_string(header.modality)},
                      {"tokens", header.rows},
                      {"dim", header.dim},
                      {"dtype", to_string(header.dtype)},
                      {"grid", nullptr},
                      {"timestamps", nullptr},
                      {"seconds_per_grid", nullptr},
                      {"seconds", nullptr},
                      {"seconds_used", nullptr},
                      {"encode_ms", static_cast<double>(header.encode_cost_us) / 1000.0}};
  if (side.grid) item["grid"] = {side.grid->t, side.grid->h, side.grid->w};
  if (!side.timestamps.empty()) item["timestamps"] = side.timestamps;
  if (side.seconds_per_grid) item["seconds_per_grid"] = *side.seconds_per_grid;
  if (side.sound) {
    item["seconds"] = side.sound->seconds;
    item["seconds_used"] = side.sound->seconds_used;
  }
  return item;
}

}  // namespace vitrove::cli
