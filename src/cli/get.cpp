// vitrove get KEY -o FILE: one embedding as a safetensors file, from a server or straight from a
// store.

#include <cstdio>
#include <filesystem>
#include <memory>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/http_client.h"
#include "cli/output.h"
#include "cli/safetensors_file.h"
#include "cli/store_access.h"
#include "vitrove/error.h"
#include "vitrove/units.h"

namespace vitrove::cli {
namespace {

struct GetArguments {
  std::string key;
  std::string output;
  std::string store;
  std::string server;
  std::string api_key;
  bool json = false;
};

struct Fetched {
  nlohmann::json item;
  NamedRows rows;
};

Fetched from_server(const GetArguments& arguments) {
  HttpClient client(arguments.server, arguments.api_key);
  SafetensorsReply reply = parse_safetensors(client.expect("GET", "/embeddings/" + arguments.key));
  nlohmann::json item = first_item(reply.metadata);
  item.erase("source");  // which is of this moment, and not of the embedding
  return {std::move(item), {"embedding", reply.dtype, reply.dim, std::move(reply.rows)}};
}

Fetched from_store(const GetArguments& arguments, const EmbeddingKey& key) {
  const auto store = look_at_store(arguments.store);
  const auto value = read_value(*store, key);
  if (!value) throw no_such_key(key);
  const auto rows = value->rows();
  return {describe_item(value->header.key, value->header, value->side),
          {"embedding", value->header.dtype, value->header.dim, {rows.begin(), rows.end()}}};
}

int get(const GetArguments& arguments) {
  const EmbeddingKey key = parse_key(arguments.key);
  Fetched fetched = arguments.server.empty() ? from_store(arguments, key) : from_server(arguments);
  fetched.item["tensor"] = fetched.rows.name;
  const nlohmann::json metadata{{"items", nlohmann::json::array({fetched.item})}};
  write_safetensors(arguments.output, {std::move(fetched.rows)}, metadata.dump());
  std::error_code ignored;
  const std::uint64_t bytes = std::filesystem::file_size(arguments.output, ignored);
  if (arguments.json) {
    nlohmann::json facts = std::move(fetched.item);
    facts["output"] = arguments.output;
    facts["bytes"] = bytes;
    std::puts(json_line(facts).c_str());
  } else {
    std::printf("%s: %s\n", arguments.output.c_str(), format_bytes(bytes).c_str());
  }
  return exit_ok;
}

}  // namespace

void add_get(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<GetArguments>();
  CLI::App* command = app.add_subcommand("get", "write one embedding to a safetensors file");
  command->add_option("KEY", arguments->key, "vt1-...")->required();
  command->add_option("-o,--output", arguments->output, "the file")->type_name("FILE")->required();
  add_store_option(*command, arguments->store);
  command->add_option("--server", arguments->server, "ask this server instead")
      ->type_name("URL")
      ->check(server_address);
  command->add_option("--api-key", arguments->api_key, "the server's key");
  command->add_flag("--json", arguments->json, "one JSON object");
  command->callback([arguments, &exit_code] { exit_code = get(*arguments); });
}

}  // namespace vitrove::cli
