// vitrove stats: what a running server has done and saved.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "cli/admin_access.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "vitrove/units.h"

namespace vitrove::cli {
namespace {

using nlohmann::json;

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

std::string percent_or_dash(const json& ratio) {
  return ratio.is_number() ? std::to_string(std::lround(100 * ratio.get<double>())) + " %" : "-";
}

std::string seconds_text(const json& seconds) {
  return format_duration(std::chrono::microseconds(std::llround(seconds.get<double>() * 1e6)));
}

std::string short_model(const json& model) {
  constexpr std::size_t enough = 12;
  return model.is_string() ? model.get<std::string>().substr(0, enough) : "(others)";
}

void print_models(const json& models) {
  Table table({"MODALITY", "MODEL", "ENTRIES", "BYTES", "WASTE", "RUNS", "MEAN AGE", "OLDEST",
               "HITS 1m", "10m", "60m", "SAVED"});
  for (const json& line : models) {
    const json& ratios = line.at("hit_ratio");
    char runs[32];
    std::snprintf(runs, sizeof runs, "%.2f", line.at("runs_per_entry").get<double>());
    table.add({line.at("modality"), short_model(line.at("model")), line.at("entries").dump(),
               format_bytes(line.at("bytes")), format_bytes(line.at("waste_bytes")), runs,
               seconds_text(line.at("mean_age_seconds")),
               seconds_text(line.at("oldest_age_seconds")), percent_or_dash(ratios.at("1m")),
               percent_or_dash(ratios.at("10m")), percent_or_dash(ratios.at("60m")),
               seconds_text(line.at("saved_seconds"))});
  }
  table.print();
}

void print_top_keys(const json& keys) {
  Table table({"TOP KEY", "MODALITY", "HITS", "SAVED"});
  for (const json& line : keys) {
    table.add({line.at("key"), line.at("modality"), line.at("hits").dump(),
               seconds_text(line.at("saved_seconds"))});
  }
  table.print();
}

json take_out(json& reply, const char* name) {
  json part = reply.value(name, json::array());
  reply.erase(name);
  return part;
}

int stats(const AdminAccess& access, HttpClient& client) {
  json reply = client.expect_json("GET", "/stats");
  if (access.as_json) {
    std::puts(reply.dump().c_str());
    return exit_ok;
  }
  Table table({"WHAT", "VALUE"});
  // These are tables of their own. Servers of before did not have them.
  const json models = take_out(reply, "models");
  const json keys = take_out(reply, "top_keys");
  print_nested(reply, "", table);
  table.print();
  if (!models.empty()) {
    std::puts("");
    print_models(models);
  }
  if (!keys.empty()) {
    std::puts("");
    print_top_keys(keys);
  }
  return exit_ok;
}

}  // namespace

void add_stats(CLI::App& app, int& exit_code) {
  auto access = std::make_shared<AdminAccess>();
  CLI::App* command = app.add_subcommand("stats", "show what a server has done and saved");
  auto word = std::make_shared<std::string>();
  command->add_option("SERVER", *word, "the server's address (default: --server)")
      ->type_name("URL")
      ->check(server_address);
  const CLI::Option* named = add_admin_options(*command, *access);
  command->callback([access, word, named, &exit_code] {
    access->server = word_or_option(*word, *named, access->server);
    exit_code = with_server(*access, [&](HttpClient& client) { return stats(*access, client); });
  });
}

}  // namespace vitrove::cli
