// vitrove flush: empties a running server's pool, its stores, or both.

#include <cstdio>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "cli/admin_access.h"
#include "cli/commands.h"

namespace vitrove::cli {
namespace {

using nlohmann::json;

struct FlushArguments {
  AdminAccess access;
  std::string scope = "local";
  std::string model;
};

// Why a tier is not done, if the server knows: which of a cluster's servers is away, perhaps.
std::string reason_of(const std::string& tier, HttpClient& client) {
  try {
    const json stats = client.expect_json("GET", "/stats");
    for (const json& store : stats.value("stores", json::array())) {
      const std::string detail = store.value("detail", "");
      if (store.value("name", "") == tier && !detail.empty()) return " (" + detail + ")";
    }
  } catch (const std::exception&) {  // it is told without one
  }
  return {};
}

int flush(const FlushArguments& arguments, HttpClient& client) {
  std::string path = "/flush?scope=" + arguments.scope;
  if (!arguments.model.empty()) path += "&model=" + query_value(arguments.model);
  const json reply = client.expect_json("POST", path);
  if (arguments.access.as_json) {
    std::puts(reply.dump().c_str());
    return reply.value("complete", true) ? exit_ok : exit_failed;
  }
  for (const json& tier : reply.at("tiers")) {
    const std::string name = tier.value("name", "?");
    if (tier.at("removed").is_null()) {
      std::printf("%-12s cannot list: left alone (raise --epoch to abandon what it holds)\n",
                  name.c_str());
    } else {
      const bool is_done = tier.value("complete", true);
      const std::string rest =
          is_done ? "" : ", but some may be left: try again" + reason_of(name, client);
      std::printf("%-12s %llu removed%s\n", name.c_str(),
                  tier.at("removed").get<unsigned long long>(), rest.c_str());
    }
  }
  return reply.value("complete", true) ? exit_ok : exit_failed;
}

}  // namespace

void add_flush(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<FlushArguments>();
  CLI::App* command = app.add_subcommand("flush", "empty a server's pool, its stores, or both");
  command->add_option("--scope", arguments->scope, "local, store or all")
      ->check(CLI::IsMember({"local", "store", "all"}))
      ->capture_default_str();
  command->add_option("--model", arguments->model,
                      "fingerprint whose values go; '*': everything under the server's prefix; "
                      "default: the server's own model");
  add_admin_options(*command, arguments->access);
  command->callback([arguments, &exit_code] {
    exit_code = with_server(arguments->access,
                            [&](HttpClient& client) { return flush(*arguments, client); });
  });
}

}  // namespace vitrove::cli
