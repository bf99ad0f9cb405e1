// vitrove rm KEY: removes one embedding, straight from a store or through a server.

#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/http_client.h"
#include "cli/store_access.h"
#include "vitrove/error.h"

namespace vitrove::cli {
namespace {

struct RmArguments {
  std::string store;
  std::string server;
  std::string api_key;
  std::string key;
  bool json = false;
};

// `left_in`: where it may still be.
int print_removed(const RmArguments& arguments, nlohmann::json facts, const std::string& left_in) {
  facts["key"] = arguments.key;
  facts["complete"] = left_in.empty();
  if (arguments.json) {
    std::puts(facts.dump().c_str());
  } else if (left_in.empty()) {
    std::printf("removed %s\n", arguments.key.c_str());
  } else {
    std::printf("removed %s, but it may still be in %s: try again\n", arguments.key.c_str(),
                left_in.c_str());
  }
  return left_in.empty() ? exit_ok : exit_failed;
}

int rm_from_server(const RmArguments& arguments) {
  HttpClient client(arguments.server, arguments.api_key);
  auto reply = client.expect_json("DELETE", "/embeddings/" + arguments.key);
  std::uint64_t removed = 0;
  std::string left_in;
  for (const auto& tier : reply.value("tiers", nlohmann::json::array())) {
    if (const auto count = tier.find("removed"); count != tier.end() && count->is_number())
      removed += count->get<std::uint64_t>();
    if (!tier.value("complete", true))
      left_in += (left_in.empty() ? "" : ", ") + tier.value("name", "");
  }
  reply["removed"] = removed;
  return print_removed(arguments, std::move(reply), left_in);
}

int rm(const RmArguments& arguments) {
  const EmbeddingKey key = parse_key(arguments.key);
  if (!arguments.server.empty()) return rm_from_server(arguments);
  const auto store = look_at_store(arguments.store);
  const StoreResult result = store->batch_remove(std::span(&key, 1), {}).front();
  if (result.status == StoreStatus::absent) throw no_such_key(key);
  if (!result.ok()) throw store_fault(*store, result);
  return print_removed(arguments, {{"removed", 1}}, {});
}

}  // namespace

void add_rm(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<RmArguments>();
  CLI::App* command = app.add_subcommand(
      "rm", "remove one embedding from a store, or from a server's pool and stores");
  command->add_option("KEY", arguments->key, "vt1-...")->required();
  add_store_option(*command, arguments->store);
  command->add_option("--server", arguments->server, "remove through this server instead")
      ->type_name("URL")
      ->check(server_address);
  command->add_option("--api-key", arguments->api_key, "the server's admin key");
  command->add_flag("--json", arguments->json, "one JSON object");
  command->callback([arguments, &exit_code] { exit_code = rm(*arguments); });
}

}  // namespace vitrove::cli
