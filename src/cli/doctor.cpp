// vitrove doctor: looks at everything a server needs and says in plain words what is wrong: the
// encoder, each store (with a real put, get, remove and claim), the pool's memory, a running
// server. Of a file store it is a guest, and where there is none yet it looks whether one could be
// made.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/claim_check.h"
#include "cli/commands.h"
#include "cli/file_store_check.h"
#include "cli/host_memory.h"
#include "cli/http_client.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/store_access.h"
#include "cli/store_advice.h"
#include "vitrove/embedding_store_factory.h"
#include "vitrove/encoder.h"
#include "vitrove/error.h"
#include "vitrove/media.h"
#include "vitrove/page_pool.h"
#include "vitrove/units.h"

namespace vitrove::cli {
namespace {

struct DoctorArguments {
  std::vector<std::string> stores;
  std::string encoder;
  std::string execution_provider = "cpu";
  std::string server;
  std::string api_key;
  std::uint64_t pool_size = std::uint64_t{4} << 30;
  bool pin_memory = false;
  bool huge_pages = false;
  bool json = false;
};

struct Finding {
  std::string what;
  enum class State { good, warning, bad } state = State::good;
  std::string says;
};

using Findings = std::vector<Finding>;

constexpr std::uint32_t small_rows = 1;
constexpr std::uint32_t large_rows = 1000;  // of 1 KiB: Redis gives such values in another way

// A value that nobody else can have: its key is random per run.
std::vector<std::byte> probe_value(const EmbeddingKey& key, std::uint32_t row_count) {
  const std::vector<std::byte> rows(row_count * 256 * sizeof(float), std::byte{0});
  PayloadChecksum checksum;
  checksum.update(rows);
  ValueHeader header;
  header.key = key;
  header.rows = row_count;
  header.dim = 256;
  header.payload_checksum = checksum.finish();
  const HeaderBytes head = encode_header(header);
  std::vector<std::byte> value(head.begin(), head.end());
  value.insert(value.end(), rows.begin(), rows.end());
  return value;
}

EmbeddingKey probe_key() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return {sha256("vitrove doctor " + std::to_string(now) + " " + std::to_string(getpid()))};
}

std::string said(const std::string& what, const StoreResult& result) {
  return what + ": " + words_for(result);
}

// Put, look, get, compare, remove. Empty when all went well.
std::string round_trip(EmbeddingStore& store, std::uint32_t rows) {
  const EmbeddingKey key = probe_key();
  const std::vector<std::byte> value = probe_value(key, rows);
  StoreContext context;
  context.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const ConstBuffer out(value);
  const StoreResult put =
      store.batch_put(std::span(&key, 1), std::span(&out, 1), PutMode::if_absent, context).front();
  if (!put.ok()) return said("a put failed", put);
  const StoreResult found = store.batch_is_exist(std::span(&key, 1), context).front();
  std::vector<std::byte> back(value.size());
  const MutableBuffer in(back);
  const StoreResult got = store.batch_get(std::span(&key, 1), std::span(&in, 1), context).front();
  StoreResult removed;
  if (store.capabilities().can_remove) {
    removed = store.batch_remove(std::span(&key, 1), context).front();
  }
  if (!found.ok()) return said("what was put could not be looked for", found);
  if (!got.ok()) return said("what was put could not be read back", got);
  if (back != value) return "what was read back differs from what was put";
  if (!removed.ok()) return said("what was put could not be removed", removed);
  return {};
}

// A large value also, where a network is in between and it need not stay.
std::string round_trips(EmbeddingStore& store) {
  std::string trouble = round_trip(store, small_rows);
  const StoreCapabilities can = store.capabilities();
  const bool tries_large =
      !can.is_local && can.can_remove && can.max_value_bytes >= std::uint64_t{1} << 20;
  if (!trouble.empty() || !tries_large) return trouble;
  trouble = round_trip(store, large_rows);
  return trouble.empty() ? trouble : "with a value of 1 MB, " + trouble;
}

void add(Finding& finding, const Remarks& remarks) {
  for (const Remark& remark : remarks) {
    finding.says += (finding.says.empty() ? "" : "; ") + remark.words;
    if (remark.kind == Remark::Kind::warning)
      finding.state = std::max(finding.state, Finding::State::warning);
    if (remark.kind == Remark::Kind::bad) finding.state = Finding::State::bad;
  }
}

void add_advice(std::string_view store, Finding& finding) {
  const std::string_view advice = advice_for(store, finding.says);
  if (!advice.empty()) finding.says += ". " + std::string(advice);
}

// A directory in which there is no store yet.
Finding check_new_place(const std::string& what, const StoreUrl& url, bool is_default) {
  Finding finding{what, {}, {}};
  add(finding, remarks_on_new_place(url.path, is_default));
  if (finding.state == Finding::State::bad) {
    add_advice("file", finding);
  } else {
    add(finding, remarks_on_capacity(url, {}));
  }
  return finding;
}

// Doctor is a guest of a file store, and a guest claims nothing.
Remarks claims_of(EmbeddingStore& store) {
  if (store.capabilities().can_claim) return remarks_on_claims(store, probe_key());
  if (store.name() != "file") return {};
  return {{Remark::Kind::note,
           "claims were not tried, since doctor is a guest here (they are files beside the values: "
           "who can put can claim; guest=false tries them)"}};
}

Finding check_store(const std::string& what, const std::string& url) {
  Finding finding{what, {}, {}};
  const std::string full = store_url(url);
  const auto file = file_store_url(full);
  std::unique_ptr<EmbeddingStore> store;
  try {
    store = look_at_store(full);
  } catch (const Error& error) {
    if (!file || error.code() != ErrorCode::unavailable) throw;
    return check_new_place(what, *file, url.empty());
  }
  const std::string trouble = round_trips(*store);
  const Remarks claims = trouble.empty() ? claims_of(*store) : Remarks();
  const StoreHealth health = store->health();
  if (!trouble.empty()) {
    finding.state = Finding::State::bad;
    finding.says = trouble + (health.detail.empty() ? "" : "; " + health.detail);
    add_advice(store->name(), finding);
    return finding;
  }
  finding.says = store->capabilities().can_remove
                     ? "put, get and remove work"
                     : "put and get work; it cannot remove, so a value of 1 KiB stays";
  add(finding, claims);
  if (health.bytes) {
    finding.says += "; " + format_bytes(*health.bytes);
    if (health.capacity) finding.says += " of " + format_bytes(*health.capacity);
    finding.says += " used";
  }
  if (!health.detail.empty()) finding.says += "; " + health.detail;
  if (health.state != StoreState::ready)
    finding.state = std::max(finding.state, Finding::State::warning);
  if (finding.state != Finding::State::good) add_advice(store->name(), finding);
  if (file) add(finding, remarks_on_capacity(*file, health));
  return finding;
}

Finding check_encoder(const DoctorArguments& arguments) {
  const auto encoder =
      make_encoder(arguments.encoder, {.execution_provider = arguments.execution_provider});
  const EncoderInfo& info = encoder->info();
  return {"encoder " + arguments.encoder, Finding::State::good,
          info.name + ": dim " + std::to_string(info.dim) + ", " +
              std::string(to_string(info.dtype)) + ", fingerprint " +
              to_hex(info.fingerprint).substr(0, 16)};
}

Finding check_pool(const DoctorArguments& arguments) {
  Finding finding{"pool of " + format_bytes(arguments.pool_size), {}, {}};
  const auto memory = host_memory();
  if (memory && arguments.pool_size > memory->total) {
    add(finding,
        {{Remark::Kind::bad, "more than all the memory there is (" + format_bytes(memory->total) +
                                 "): the server would be killed while it fills; lower "
                                 "--pool-size"}});
    return finding;
  }
  const PagePool pool({.pool_bytes = arguments.pool_size,
                       .pin_memory = arguments.pin_memory,
                       .huge_pages = arguments.huge_pages});
  finding.says =
      std::to_string(pool.total_pages()) + " pages of " + format_bytes(pool.page_bytes());
  for (const std::string& warning : pool.warnings())
    add(finding, {{Remark::Kind::warning, warning}});
  if (memory && arguments.pool_size > memory->available) {
    add(finding, {{Remark::Kind::warning, "more than the memory that is free now (" +
                                              format_bytes(memory->available) + " of " +
                                              format_bytes(memory->total) + ")"}});
  }
  return finding;
}

// "redis is down, file is degraded"; nothing when all are well.
std::string unwell_stores(const nlohmann::json& health) {
  std::string words;
  if (health.value("status", "ok") == "ok") return words;
  for (const auto& store : health.value("stores", nlohmann::json::array())) {
    const std::string state = store.value("state", "");
    if (state == "ready") continue;
    words += (words.empty() ? "" : ", ") + store.value("name", "") + " is " + state;
  }
  return words;
}

Finding check_server(const DoctorArguments& arguments) {
  const std::string what = "server " + arguments.server;
  HttpClient client(arguments.server, arguments.api_key);
  client.set_timeout(std::chrono::seconds(10));
  const nlohmann::json health = client.expect_json("GET", "/health");
  if (!health.contains("uptime_seconds"))
    throw not_vitrove(arguments.server, "with JSON of its own");
  const HttpReply ready = client.request("GET", "/ready");
  if (ready.status != 200) {
    return {what, Finding::State::warning,
            "alive, but not ready (draining, or its encoder is stuck)"};
  }
  client.expect("GET", "/health_generate");
  const std::string stores = unwell_stores(health);
  if (!stores.empty()) {
    return {what, Finding::State::warning,
            "alive, ready, and its encoder works, but not all of its stores: " + stores +
                " (requests go on without; `vitrove stats URL` says why)"};
  }
  return {what, Finding::State::good, "alive, ready, and its encoder works"};
}

// For comparing hosts that share a store: other versions may decode to other bytes.
Finding decoders() {
  Finding finding{"decoders", Finding::State::good, {}};
  for (const MediaLibrary& library : media_libraries()) {
    finding.says += (finding.says.empty() ? "" : ", ") + library.name + " " +
                    (library.version.empty() ? "is not there" : library.version);
  }
  return finding;
}

// Whatever a check throws is what it found; the others go on.
template <typename Check>
Finding outcome_of(const std::string& what, Check check) {
  try {
    return check();
  } catch (const Error& error) {
    return {what, Finding::State::bad, message_of(error)};
  } catch (const std::exception& error) {
    return {what, Finding::State::bad, error.what()};
  }
}

Finding store_outcome(const std::string& url) {
  return outcome_of("store " + redact_url(url), [&] {
    const std::string what =
        "store " + redact_url(store_url(url)) + (url.empty() ? " (default)" : "");
    return check_store(what, url);
  });
}

std::string_view word(Finding::State state) {
  switch (state) {
    case Finding::State::good:
      return "good";
    case Finding::State::warning:
      return "warning";
    case Finding::State::bad:
      break;
  }
  return "bad";
}

void print(const Findings& findings, bool as_json) {
  if (as_json) {
    auto list = nlohmann::json::array();
    auto worst = Finding::State::good;
    for (const Finding& finding : findings) {
      worst = std::max(worst, finding.state);
      list.push_back(
          {{"what", finding.what}, {"state", word(finding.state)}, {"says", finding.says}});
    }
    std::puts(json_line({{"state", word(worst)}, {"findings", std::move(list)}}).c_str());
    return;
  }
  for (const Finding& finding : findings)
    std::printf("%-8s %s: %s\n", std::string(word(finding.state)).c_str(), finding.what.c_str(),
                finding.says.c_str());
}

int doctor(const DoctorArguments& arguments) {
  Findings findings;
  for (const std::string& url : arguments.stores) findings.push_back(store_outcome(url));
  if (!arguments.encoder.empty()) {
    findings.push_back(
        outcome_of("encoder " + arguments.encoder, [&] { return check_encoder(arguments); }));
  }
  if (!arguments.server.empty()) {
    findings.push_back(
        outcome_of("server " + arguments.server, [&] { return check_server(arguments); }));
  } else {
    if (arguments.stores.empty()) findings.push_back(store_outcome(""));
    findings.push_back(outcome_of("pool of " + format_bytes(arguments.pool_size),
                                  [&] { return check_pool(arguments); }));
  }
  std::string names;
  for (const std::string& name : EmbeddingStoreFactory::with_builtins().available())
    names += (names.empty() ? "" : ", ") + name;
  findings.push_back({"stores available", Finding::State::good, names});
  findings.push_back(decoders());
  print(findings, arguments.json);
  for (const Finding& finding : findings)
    if (finding.state == Finding::State::bad) return exit_failed;
  return exit_ok;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<DoctorArguments>();
  CLI::App* command =
      app.add_subcommand("doctor", "check stores, encoder, memory and a running server");
  command->add_option("STORES,--store", arguments->stores, "store URLs to check")->type_name("URL");
  command->add_option("--encoder", arguments->encoder, "model directory to load");
  command
      ->add_option("--execution-provider", arguments->execution_provider,
                   "what the encoder is to run on")
      ->capture_default_str();
  command->add_option("--server", arguments->server, "a running server")
      ->type_name("URL")
      ->check(server_address);
  command->add_option("--api-key", arguments->api_key, "the server's key");
  add_bytes(*command, "--pool-size", arguments->pool_size, "pool to try out");
  command->add_flag("--pin-memory", arguments->pin_memory, "try to lock it");
  command->add_flag("--huge-pages", arguments->huge_pages, "try huge pages");
  command->add_flag("--json", arguments->json, "one JSON object");
  command->callback([arguments, &exit_code] { exit_code = doctor(*arguments); });
}

}  // namespace vitrove::cli
