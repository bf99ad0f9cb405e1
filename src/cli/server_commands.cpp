// vitrove flush and stats: a running server's admin routes.

#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/http_client.h"
#include "cli/output.h"

namespace vitrove::cli {
namespace {

using nlohmann::json;

struct ServerArguments {
  std::string server = "http://127.0.0.1:8090";
  std::string key;
  std::string scope = "local";
  std::string model;
  bool as_json = false;
};

void add_server_arguments(CLI::App& command, ServerArguments& arguments) {
  command.add_option("--server", arguments.server, "the server's address")
      ->type_name("URL")
      ->capture_default_str();
  command.add_option("--admin-key,--api-key", arguments.key, "the server's admin key");
  command.add_flag("--json", arguments.as_json, "the server's JSON as it is");
}

int flush(const ServerArguments& arguments) {
  HttpClient client(arguments.server, arguments.key);
  std::string path = "/flush?scope=" + arguments.scope;
  if (!arguments.model.empty()) path += "&model=" + query_value(arguments.model);
  const std::string body = client.expect("POST", path);
  const json reply = json::parse(body);
  if (arguments.as_json) {
    std::puts(body.c_str());
    return reply.value("complete", true) ? exit_ok : exit_failed;
  }
  for (const json& tier : reply.at("tiers")) {
    const std::string name = tier.value("name", "?");
    if (tier.at("removed").is_null()) {
      std::printf("%-12s cannot list: left alone (raise --epoch to abandon what it holds)\n",
                  name.c_str());
    } else {
      std::printf("%-12s %llu removed%s\n", name.c_str(),
                  tier.at("removed").get<unsigned long long>(),
                  tier.value("complete", true) ? "" : ", but some may be left: try again");
    }
  }
  return reply.value("complete", true) ? exit_ok : exit_failed;
}

void print_nested(const json& value, const std::string& prefix, Table& table) {
  if (value.is_object()) {
    for (const auto& [name, inner] : value.items())
      print_nested(inner, prefix.empty() ? name : std::string(prefix).append(".").append(name),
                   table);
  } else if (value.is_array() && !value.empty() && value.front().is_object()) {
    for (std::size_t i = 0; i < value.size(); ++i)
      print_nested(value[i], prefix + "." + value[i].value("name", std::to_string(i)), table);
  } else {
    table.add({prefix, value.is_string() ? value.get<std::string>() : value.dump()});
  }
}

int stats(const ServerArguments& arguments) {
  HttpClient client(arguments.server, arguments.key);
  const std::string body = client.expect("GET", "/stats");
  if (arguments.as_json) {
    std::puts(body.c_str());
    return exit_ok;
  }
  Table table({"WHAT", "VALUE"});
  print_nested(json::parse(body), "", table);
  table.print();
  return exit_ok;
}

}  // namespace

void add_flush(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ServerArguments>();
  CLI::App* command = app.add_subcommand("flush", "empty a server's pool, its stores, or both");
  command->add_option("--scope", arguments->scope, "local, store or all")
      ->check(CLI::IsMember({"local", "store", "all"}))
      ->capture_default_str();
  command->add_option("--model", arguments->model,
                      "fingerprint whose values go; '*': everything under the server's prefix; "
                      "default: the server's own model");
  add_server_arguments(*command, *arguments);
  command->callback([arguments, &exit_code] { exit_code = flush(*arguments); });
}

void add_stats(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ServerArguments>();
  CLI::App* command = app.add_subcommand("stats", "show what a server has done and saved");
  add_server_arguments(*command, *arguments);
  command->callback([arguments, &exit_code] { exit_code = stats(*arguments); });
}

}  // namespace vitrove::cli
