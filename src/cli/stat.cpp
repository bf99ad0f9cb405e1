// vitrove stat KEY: shows and checks one stored embedding, no server needed.

#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/store_access.h"

namespace vitrove::cli {
namespace {

struct StatArguments {
  std::string store;
  std::string key;
  bool json = false;
};

int stat(const StatArguments& arguments) {
  const EmbeddingKey key = parse_key(arguments.key);
  const auto store = look_at_store(arguments.store);
  const auto value = read_value(*store, key);
  if (!value) throw no_such_key(key);
  auto facts = describe_header(value->header);
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

}  // namespace

void add_stat(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<StatArguments>();
  CLI::App* command = app.add_subcommand("stat", "show and check one stored embedding");
  command->add_option("KEY", arguments->key, "vt1-...")->required();
  add_store_option(*command, arguments->store);
  command->add_flag("--json", arguments->json, "one JSON object");
  command->callback([arguments, &exit_code] { exit_code = stat(*arguments); });
}

}  // namespace vitrove::cli
