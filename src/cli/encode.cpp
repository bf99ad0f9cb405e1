// vitrove encode FILE...: encodes pictures, clips and sounds, and says where each embedding came
// from and what was refused, and why.
//
// With --server (several may be given) the files are sent there: items are spread, and an item
// whose server is away goes to another. Without it, the pipeline runs in this process, with
// --encoder and --store, and the command waits for its puts.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/environment.h"
#include "base/log.h"
#include "cli/base64.h"
#include "cli/commands.h"
#include "cli/http_client.h"
#include "cli/output.h"
#include "cli/safetensors_file.h"
#include "cli/serve_options.h"
#include "cli/server_list.h"
#include "cli/store_access.h"
#include "server/encode_service.h"
#include "vitrove/error.h"
#include "vitrove/units.h"

namespace vitrove::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct EncodeArguments {
  std::vector<std::string> files;
  std::vector<std::string> servers;
  std::string api_key;
  std::string kwargs;
  std::string modality;  // of all files; empty: each is what the encoder takes it for
  std::string output;
  unsigned jobs = 4;
  bool as_json = false;
  ServerConfig config;
};

// One line of the result.
struct Outcome {
  std::string file;
  json item;                    // the reply's item, when it went well
  std::vector<std::byte> rows;  // only with --output
  std::uint32_t dim = 0;
  DType dtype = DType::float32;
  std::string error;
  ErrorCode code = ErrorCode::internal;
};

// Of a folder only what is not hidden; what is named is taken, whatever its name.
bool is_wanted(const fs::directory_entry& entry) {
  std::error_code gone;
  return entry.is_regular_file(gone) && !entry.path().filename().string().starts_with('.');
}

// What is wrong with a file or folder that was named; empty when it is there.
std::string path_trouble(const std::string& name) {
  std::error_code failed;
  if (fs::exists(fs::status(name, failed))) return {};
  return name + ": " + failed.message();
}

std::vector<std::string> expand(const std::vector<std::string>& names) {
  std::vector<std::string> files;
  for (const std::string& name : names) {
    if (!fs::is_directory(name)) {
      files.push_back(name);
      continue;
    }
    std::vector<std::string> inside;
    constexpr auto options = fs::directory_options::skip_permission_denied;
    for (const auto& entry : fs::recursive_directory_iterator(name, options)) {
      if (is_wanted(entry)) inside.push_back(entry.path().string());
    }
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

std::vector<std::byte> read_file(const std::string& name) {
  errno = 0;
  std::ifstream in(name, std::ios::binary | std::ios::ate);
  if (!in) {
    throw Error(ErrorCode::not_found, "cannot read " + name + ": " + errno_text(errno));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(in.tellg()));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!in) throw Error(ErrorCode::not_found, "cannot read " + name + " to its end");
  return bytes;
}

// --- through servers -------------------------------------------------------------------------

std::string request_body(const EncodeArguments& arguments, std::span<const std::byte> bytes) {
  json body{{"mm_items", json::array({"data:;base64," + base64_encode(bytes)})},
            {"return", arguments.output.empty() ? "metadata" : "safetensors"}};
  if (!arguments.modality.empty()) body["modality"] = arguments.modality;
  if (!arguments.kwargs.empty())
    body["mm_processor_kwargs"] = json::parse(arguments.kwargs, nullptr, false);
  return body.dump();
}

void read_reply(const std::string& reply, bool with_rows, Outcome& outcome) {
  if (!with_rows) {
    outcome.item = first_item(reply);
    return;
  }
  SafetensorsReply tensors = parse_safetensors(reply);
  outcome.item = first_item(tensors.metadata);
  outcome.rows = std::move(tensors.rows);
  outcome.dim = tensors.dim;
  outcome.dtype = tensors.dtype;
}

// Whatever is odd about a reply is its server's fault, too, and another server may do better.
bool is_servers_fault(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::queue_full ||
         code == ErrorCode::deadline_exceeded || code == ErrorCode::internal;
}

// A server says that it is alive in milliseconds, whatever its load: one that does not must not
// keep a file for as long as an encode may take.
constexpr std::chrono::seconds patience_with_health{5};

std::string ask(const EncodeArguments& arguments, const std::string& url, bool is_unknown,
                const std::string& body) {
  if (is_unknown) {
    HttpClient client(url, arguments.api_key);
    client.set_timeout(patience_with_health);
    client.request("GET", "/health");
  }
  HttpClient client(url, arguments.api_key);
  return client.expect("POST", "/encode", body);
}

// A server that does not answer in time hangs, perhaps, and is no better than one that is gone.
bool is_sign_of_being_away(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::deadline_exceeded;
}

void encode_remotely(const EncodeArguments& arguments, ServerList& servers, Outcome& outcome) {
  const std::string body = request_body(arguments, read_file(outcome.file));
  std::vector<bool> tried(servers.size(), false);
  while (const auto call = servers.next(tried)) {
    tried[call->server] = true;
    try {
      read_reply(ask(arguments, servers.url(call->server), call->is_trial, body),
                 !arguments.output.empty(), outcome);
      servers.ended(*call, ServerList::Ended::answered);
      outcome.error.clear();
      return;
    } catch (const Error& error) {
      const bool is_away = is_sign_of_being_away(error.code());
      servers.ended(*call, is_away ? ServerList::Ended::away : ServerList::Ended::answered);
      outcome.error = error.what();
      if (is_away && !error.detail().empty()) outcome.error += ": " + error.detail();
      outcome.code = error.code();
      if (!is_servers_fault(error.code())) return;
    } catch (...) {  // others may wait for what becomes of it
      servers.ended(*call, ServerList::Ended::away);
      throw;
    }
  }
}

// --- in this process ---------------------------------------------------------------------------

json describe(const EncodedItem& item) {
  const EmbeddingView& view = item.view;
  ValueHeader header;
  header.modality = item.modality;
  header.rows = view.rows();
  header.dim = view.dim();
  header.dtype = view.dtype();
  header.encode_cost_us = static_cast<std::uint64_t>(view.encode_cost().count());
  json out = describe_item(item.key, header, view.side_data());
  out["source"] = to_string(item.source);
  return out;
}

void encode_locally(const EncodeArguments& arguments, EncodeService& service, Outcome& outcome) {
  EncodeItem item;
  item.bytes = std::make_shared<const std::vector<std::byte>>(read_file(outcome.file));
  item.modality = parse_modality(arguments.modality);  // nothing of an empty one
  item.mm_processor_kwargs = arguments.kwargs;
  EncodeRequest request;
  request.req_id = outcome.file;
  request.items.push_back(std::move(item));
  request.deadline = std::chrono::steady_clock::now() + arguments.config.request_timeout;
  const std::vector<EncodedItem> items = service.encode(request);
  outcome.item = describe(items.front());
  if (arguments.output.empty()) return;
  outcome.dim = items.front().view.dim();
  outcome.dtype = items.front().view.dtype();
  for (const auto run : items.front().view.runs())
    outcome.rows.insert(outcome.rows.end(), run.begin(), run.end());
}

// --- both --------------------------------------------------------------------------------------

template <typename Work>
std::vector<Outcome> run_all(const EncodeArguments& arguments,
                             const std::vector<std::string>& files, const Work& work) {
  std::vector<Outcome> outcomes(files.size());
  Progress progress(files.size(), arguments.as_json);
  std::mutex progress_mutex;
  std::atomic<std::size_t> next{0};
  const auto worker = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) {
      Outcome& outcome = outcomes[i];
      outcome.file = files[i];
      try {
        work(outcome);
      } catch (const Error& error) {
        outcome.error = error.what();
        outcome.code = error.code();
      } catch (const std::exception& error) {
        outcome.error = error.what();
      }
      const std::lock_guard lock(progress_mutex);
      progress.step(outcome.file);
    }
  };
  {
    std::vector<std::jthread> threads;
    const std::size_t count = std::min<std::size_t>(std::max(1U, arguments.jobs), files.size());
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back(worker);
  }
  return outcomes;
}

json describe(const Outcome& outcome) {
  json fact{{"file", outcome.file}};
  if (outcome.error.empty()) {
    fact.update(outcome.item);
  } else {
    fact["error"] = {{"code", to_string(outcome.code)}, {"message", outcome.error}};
  }
  return fact;
}

// What became of all files together.
struct Totals {
  explicit Totals(const std::vector<Outcome>& outcomes) {
    for (const Outcome& outcome : outcomes) {
      if (!outcome.error.empty()) {
        ++refused;
      } else if (outcome.item.value("source", "?") == "encoded") {
        ++encoded;
      } else {
        ++hits;
        saved_ms += outcome.item.value("encode_ms", 0.0);
      }
    }
  }
  std::size_t encoded = 0;
  std::size_t hits = 0;
  std::size_t refused = 0;
  double saved_ms = 0;
};

// What the stores have not taken, once all puts have ended or the time for them is over.
struct Unstored {
  explicit Unstored(const ControllerStats& stats) : values(stats.puts_dropped) {
    for (const StoreStats& store : stats.stores) {
      const StoreOpStats& put = store.put;
      values += put.faults + put.cancelled + put.pending;
      if (put.cancelled + put.pending > 0) reasons += ", " + store.name + " out of time";
      for (const auto& [reason, count] : put.reasons) reasons += ", " + store.name + " " + reason;
    }
    if (stats.puts_dropped > 0) reasons += ", dropped";
  }
  std::uint64_t values = 0;  // embeddings and aliases, for each store
  std::string reasons;       // ", NAME REASON" of each
};

void print_json(const std::vector<Outcome>& outcomes, const std::optional<Unstored>& unstored) {
  const Totals totals(outcomes);
  json items = json::array();
  for (const Outcome& outcome : outcomes) items.push_back(describe(outcome));
  json summary{{"encoded", totals.encoded},
               {"hits", totals.hits},
               {"refused", totals.refused},
               {"saved_ms", totals.saved_ms},
               {"items", std::move(items)}};
  if (unstored) summary["unstored"] = unstored->values;
  std::puts(json_line(summary).c_str());
}

// Every one with its reason.
void print_refused(const std::vector<Outcome>& outcomes) {
  Table table({"REFUSED", "WHY", "REASON"});
  for (const Outcome& outcome : outcomes) {
    if (outcome.error.empty()) continue;
    table.add({shown(outcome.file), std::string(to_string(outcome.code)), shown(outcome.error)});
  }
  std::puts("");
  table.print();
  std::puts("");
}

void print_table(const std::vector<Outcome>& outcomes) {
  Table table({"FILE", "FROM", "TOKENS", "ENCODE", "KEY"});
  for (const Outcome& outcome : outcomes) {
    if (!outcome.error.empty()) continue;
    const double cost = outcome.item.value("encode_ms", 0.0);
    table.add({shown(outcome.file), outcome.item.value("source", "?"),
               outcome.item.at("tokens").dump(),
               format_duration(std::chrono::microseconds(static_cast<long long>(cost * 1000))),
               outcome.item.value("key", "")});
  }
  table.print();
  const Totals totals(outcomes);
  if (totals.refused > 0) print_refused(outcomes);
  std::printf("%s: %zu encoded, %s (%.1f ms of encoding saved), %zu refused\n",
              counted(outcomes.size(), "file", "files").c_str(), totals.encoded,
              counted(totals.hits, "hit", "hits").c_str(), totals.saved_ms, totals.refused);
}

void write_output(const std::string& path, std::vector<Outcome>& outcomes) {
  std::vector<NamedRows> tensors;
  json facts = json::array();
  for (Outcome& outcome : outcomes) {
    if (!outcome.error.empty()) continue;
    json fact = outcome.item;
    fact["file"] = outcome.file;
    fact["tensor"] = "embedding." + std::to_string(tensors.size());
    facts.push_back(std::move(fact));
    tensors.push_back({"embedding." + std::to_string(tensors.size()), outcome.dtype, outcome.dim,
                       std::move(outcome.rows)});
  }
  write_safetensors(path, tensors, json_line({{"items", facts}}));
}

// `unstored`: of the puts of this process; servers tell theirs to nobody but their operators.
int finish(const EncodeArguments& arguments, std::vector<Outcome>& outcomes,
           const std::optional<Unstored>& unstored = std::nullopt) {
  if (!arguments.as_json) print_table(outcomes);
  if (!arguments.output.empty()) write_output(arguments.output, outcomes);
  if (arguments.as_json) print_json(outcomes, unstored);
  const bool all_stored = !unstored || unstored->values == 0;
  if (!all_stored) {
    std::fprintf(stderr, "vitrove: not all embeddings reached the store: %llu unstored%s\n",
                 static_cast<unsigned long long>(unstored->values), unstored->reasons.c_str());
  }
  const auto failed = static_cast<std::size_t>(
      std::count_if(outcomes.begin(), outcomes.end(),
                    [](const Outcome& outcome) { return !outcome.error.empty(); }));
  if (failed == 0) return all_stored ? exit_ok : exit_unreachable;
  const bool all_away = std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome& outcome) {
    return !outcome.error.empty() && outcome.code == ErrorCode::unavailable;
  });
  if (all_away) return exit_unreachable;
  return failed == outcomes.size() ? exit_failed : exit_partial;
}

int encode(EncodeArguments& arguments) {
  if (!arguments.kwargs.empty() && !json::parse(arguments.kwargs, nullptr, false).is_object())
    throw Error(ErrorCode::invalid_argument, "--mm-processor-kwargs is not a JSON object");
  if (arguments.servers.empty() && arguments.config.encoder.empty())
    throw Error(ErrorCode::invalid_argument, "give --server URL, or --encoder DIR to encode here");
  const std::vector<std::string> files = expand(arguments.files);

  if (!arguments.servers.empty()) {
    ServerList servers(arguments.servers);
    auto outcomes = run_all(
        arguments, files, [&](Outcome& outcome) { encode_remotely(arguments, servers, outcome); });
    return finish(arguments, outcomes);
  }

  set_up_logging(parse_log_level(arguments.config.log_level), arguments.config.log_format);
  const auto service = EncodeService::from_config(arguments.config);
  auto outcomes = run_all(arguments, files,
                          [&](Outcome& outcome) { encode_locally(arguments, *service, outcome); });
  const auto patience = std::chrono::steady_clock::now() + arguments.config.drain_timeout;
  service->controller().wait_for_puts(patience);
  return finish(arguments, outcomes, Unstored(service->controller().stats()));
}

}  // namespace

void add_encode(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<EncodeArguments>();
  ServerConfig& config = arguments->config;
  config.pool_size = std::uint64_t{256} << 20;
  config.log_level = "warning";
  CLI::App* command =
      app.add_subcommand("encode", "encode media through servers, or in this process");
  command->add_option("FILES", arguments->files, "pictures, clips, sounds, or folders of them")
      ->required()
      ->check(path_trouble);
  command->add_option("--server", arguments->servers, "server to send to, repeatable")
      ->type_name("URL")
      ->check(server_address);
  command->add_option("--api-key", arguments->api_key, "the servers' key");
  command->add_option("--mm-processor-kwargs", arguments->kwargs,
                      "preprocessing parameters, a JSON object");
  command
      ->add_option("--modality", arguments->modality,
                   "what all files are: image, video or audio (default: what the encoder takes "
                   "first if the file can be that, else what its content is; a GIF can be a "
                   "picture or a clip, an MP4 or WebM with both a clip or its sound)")
      ->type_name("MODALITY")
      ->check(CLI::IsMember({"image", "video", "audio"}));
  command->add_option("-o,--output", arguments->output, "write the rows to a safetensors file")
      ->type_name("FILE");
  command->add_option("-j,--jobs", arguments->jobs, "files at a time")
      ->capture_default_str()
      ->check(CLI::Range(1U, 256U));
  command->add_flag("--json", arguments->as_json, "one JSON object");
  add_model_options(*command, config);
  command->get_option("--encoder")->required(false)->excludes("--server");
  add_cache_options(*command, config);
  add_media_options(*command, config);
  add_log_options(*command, config);
  command->callback([arguments, &exit_code] { exit_code = encode(*arguments); });
}

}  // namespace vitrove::cli
