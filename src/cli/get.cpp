// vitrove get KEY -o FILE: one embedding as a safetensors file, from a server or straight from a
// store.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/http_client.h"
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

void from_server(const GetArguments& arguments) {
  HttpClient client(arguments.server, arguments.api_key);
  const SafetensorsReply reply =
      parse_safetensors(client.expect("GET", "/embeddings/" + arguments.key));
  write_safetensors(arguments.output, {{"embedding", reply.dtype, reply.dim, reply.rows}},
                    reply.metadata);
}

void from_store(const GetArguments& arguments, const EmbeddingKey& key) {
  const auto store = open_store(arguments.store);
  const auto value = read_value(*store, key);
  if (!value) throw Error(ErrorCode::not_found, "no such key in this store");
  const auto rows = value->rows();
  write_safetensors(
      arguments.output,
      {{"embedding", value->header.dtype, value->header.dim, {rows.begin(), rows.end()}}},
      describe_header(value->header));
}

int get(const GetArguments& arguments) {
  const EmbeddingKey key = parse_key(arguments.key);
  if (arguments.server.empty()) {
    from_store(arguments, key);
  } else {
    from_server(arguments);
  }
  std::error_code ignored;
  const std::uint64_t bytes = std::filesystem::file_size(arguments.output, ignored);
  if (arguments.json) {
    const nlohmann::json written = {
        {"key", key.text()}, {"output", arguments.output}, {"bytes", bytes}};
    // A file's name need not be UTF-8.
    std::puts(written.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
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
  command->add_option("--store", arguments->store, "the store (default: the default file store)")
      ->type_name("URL");
  command->add_option("--server", arguments->server, "ask this server instead")->type_name("URL");
  command->add_option("--api-key", arguments->api_key, "the server's key");
  command->add_flag("--json", arguments->json, "one JSON object");
  command->callback([arguments, &exit_code] { exit_code = get(*arguments); });
}

}  // namespace vitrove::cli
