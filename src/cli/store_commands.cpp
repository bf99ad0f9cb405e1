// vitrove ls, stat, rm: what a store holds, read straight from the store, no server needed.

#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/http_client.h"
#include "cli/output.h"
#include "cli/store_access.h"
#include "vitrove/error.h"
#include "vitrove/units.h"

namespace vitrove::cli {
namespace {

struct StoreArguments {
  std::string store;
  std::string server;
  std::string api_key;
  std::string key;
  bool json = false;
  std::size_t limit = 0;
};

void add_store_option(CLI::App& command, StoreArguments& arguments) {
  command.add_option("--store", arguments.store, "the store (default: the default file store)")
      ->type_name("URL");
}

std::string modality_and_shape(const ValueHeader& header) {
  if (header.kind == ValueKind::alias) return "alias";
  return std::string(to_string(header.modality)) + " " + std::to_string(header.rows) + "x" +
         std::to_string(header.dim) + " " + std::string(to_string(header.dtype));
}

int ls(const StoreArguments& arguments) {
  const auto store = open_store(arguments.store);
  if (!store->capabilities().can_list)
    throw Error(ErrorCode::invalid_argument,
                "a " + std::string(store->name()) + " store cannot list");
  Table table({"KEY", "BYTES", "WHAT", "ENCODE", "USED"});
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  const auto visit = [&](const ListedValue& value) {
    ValueHeader header;
    const bool readable =
        value.header && parse_header(*value.header, value.size, header) == Reject::none;
    ++count;
    bytes += value.size;
    if (arguments.json) {
      auto line = readable ? nlohmann::json::parse(describe_header(header))
                           : nlohmann::json{{"key", value.key.text()}, {"kind", "unreadable"}};
      line["bytes"] = value.size;
      std::puts(line.dump().c_str());
    } else {
      table.add({value.key.text(), format_bytes(value.size),
                 readable ? modality_and_shape(header) : "unreadable",
                 readable ? format_duration(std::chrono::microseconds(header.encode_cost_us)) : "-",
                 format_age(value.last_used)});
    }
    return arguments.limit == 0 || count < arguments.limit;
  };
  const StoreResult result = store->list({.with_header = true}, visit, {});
  if (!result.ok())
    throw Error(ErrorCode::unavailable,
                "the store failed: " + std::string(to_string(result.status)));
  if (!arguments.json) {
    table.print();
    std::printf("%zu values, %s\n", count, format_bytes(bytes).c_str());
  }
  return exit_ok;
}

int stat(const StoreArguments& arguments) {
  const EmbeddingKey key = parse_key(arguments.key);
  const auto store = open_store(arguments.store);
  const auto value = read_value(*store, key);
  if (!value) {
    std::fprintf(stderr, "vitrove: no such key in this store\n");
    return exit_not_found;
  }
  auto facts = nlohmann::json::parse(describe_header(value->header));
  if (value->header.key != key) facts["alias"] = key.text();
  if (value->side.grid)
    facts["grid"] = {value->side.grid->t, value->side.grid->h, value->side.grid->w};
  if (arguments.json) {
    std::puts(facts.dump().c_str());
    return exit_ok;
  }
  for (const auto& [name, fact] : facts.items()) {
    const std::string text = fact.is_string() ? fact.get<std::string>() : fact.dump();
    std::printf("%-12s %s\n", name.c_str(), text.c_str());
  }
  std::puts("checksum     good");
  return exit_ok;
}

int rm_from_server(const StoreArguments& arguments) {
  HttpClient client(arguments.server, arguments.api_key);
  const std::string body = client.expect("DELETE", "/embeddings/" + arguments.key);
  std::puts(body.c_str());
  return exit_ok;
}

int rm(const StoreArguments& arguments) {
  const EmbeddingKey key = parse_key(arguments.key);
  if (!arguments.server.empty()) return rm_from_server(arguments);
  const auto store = open_store(arguments.store);
  const StoreResult result = store->batch_remove(std::span(&key, 1), {}).front();
  if (result.status == StoreStatus::absent) {
    std::fprintf(stderr, "vitrove: no such key in this store\n");
    return exit_not_found;
  }
  if (!result.ok())
    throw Error(ErrorCode::unavailable,
                "the store failed: " + std::string(to_string(result.status)));
  if (arguments.json) {
    std::puts(nlohmann::json{{"key", key.text()}, {"removed", 1}}.dump().c_str());
  } else {
    std::printf("removed %s\n", key.text().c_str());
  }
  return exit_ok;
}

}  // namespace

void add_ls(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<StoreArguments>();
  CLI::App* command = app.add_subcommand("ls", "list what a store holds");
  add_store_option(*command, *arguments);
  command->add_option("--limit", arguments->limit, "at most so many; 0: all")
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "one JSON object a line");
  command->callback([arguments, &exit_code] { exit_code = ls(*arguments); });
}

void add_stat(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<StoreArguments>();
  CLI::App* command = app.add_subcommand("stat", "show and check one stored embedding");
  command->add_option("KEY", arguments->key, "vt1-...")->required();
  add_store_option(*command, *arguments);
  command->add_flag("--json", arguments->json, "one JSON object");
  command->callback([arguments, &exit_code] { exit_code = stat(*arguments); });
}

void add_rm(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<StoreArguments>();
  CLI::App* command = app.add_subcommand(
      "rm", "remove one embedding from a store, or from a server's pool and stores");
  command->add_option("KEY", arguments->key, "vt1-...")->required();
  add_store_option(*command, *arguments);
  command->add_option("--server", arguments->server, "remove through this server instead")
      ->type_name("URL");
  command->add_option("--api-key", arguments->api_key, "the server's admin key");
  command->add_flag("--json", arguments->json, "one JSON object");
  command->callback([arguments, &exit_code] { exit_code = rm(*arguments); });
}

}  // namespace vitrove::cli
