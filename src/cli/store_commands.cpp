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

// What ls has seen, as a table or as JSON.
class Listing {
 public:
  explicit Listing(bool as_json) : as_json_(as_json) {}

  void add(const ListedValue& value) {
    ValueHeader header;
    const bool readable =
        value.header && parse_header(*value.header, value.size, header) == Reject::none;
    bytes_ += value.size;
    ++(!readable ? unreadable_ : header.kind == ValueKind::alias ? aliases_ : embeddings_);
    if (as_json_) {
      auto fact = readable ? describe_header(header)
                           : nlohmann::json{{"key", value.key.text()}, {"kind", "unreadable"}};
      fact["bytes"] = value.size;
      values_.push_back(std::move(fact));
      return;
    }
    table_.add({value.key.text(), format_bytes(value.size),
                readable ? modality_and_shape(header) : "unreadable",
                readable ? format_duration(std::chrono::microseconds(header.encode_cost_us)) : "-",
                format_age(value.last_used)});
  }

  std::size_t count() const { return embeddings_ + aliases_ + unreadable_; }

  void print(const std::string& store) const {
    if (as_json_) {
      std::puts(json_line({{"store", store},
                           {"embeddings", embeddings_},
                           {"aliases", aliases_},
                           {"unreadable", unreadable_},
                           {"bytes", bytes_},
                           {"values", values_}})
                    .c_str());
      return;
    }
    if (count() == 0) {
      std::printf("the store %s holds nothing yet\n", store.c_str());
      return;
    }
    table_.print();
    std::printf("%zu %s, %zu %s of them", embeddings_,
                embeddings_ == 1 ? "embedding" : "embeddings", aliases_,
                aliases_ == 1 ? "alias" : "aliases");
    if (unreadable_ > 0) std::printf(", %zu unreadable", unreadable_);
    std::printf(", %s\n", format_bytes(bytes_).c_str());
  }

 private:
  const bool as_json_;
  Table table_{{"KEY", "BYTES", "WHAT", "ENCODE", "USED"}};
  nlohmann::json values_ = nlohmann::json::array();
  std::size_t embeddings_ = 0;
  std::size_t aliases_ = 0;
  std::size_t unreadable_ = 0;
  std::uint64_t bytes_ = 0;
};

int ls(const StoreArguments& arguments) {
  const auto store = look_at_store(arguments.store);
  if (!store->capabilities().can_list)
    throw Error(ErrorCode::invalid_argument, "a " + std::string(store->name()) +
                                                 " store cannot list what it holds; ask for a key "
                                                 "with `vitrove stat`");
  Listing listing(arguments.json);
  const auto visit = [&](const ListedValue& value) {
    listing.add(value);
    return arguments.limit == 0 || listing.count() < arguments.limit;
  };
  const StoreResult result = store->list({.with_header = true}, visit, {});
  if (!result.ok()) throw store_fault(*store, result);
  listing.print(redact_url(store_url(arguments.store)));
  return exit_ok;
}

int stat(const StoreArguments& arguments) {
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

void print_removed(const StoreArguments& arguments, nlohmann::json facts) {
  facts["key"] = arguments.key;
  if (arguments.json) {
    std::puts(facts.dump().c_str());
  } else {
    std::printf("removed %s\n", arguments.key.c_str());
  }
}

int rm_from_server(const StoreArguments& arguments) {
  HttpClient client(arguments.server, arguments.api_key);
  auto reply = client.expect_json("DELETE", "/embeddings/" + arguments.key);
  std::uint64_t removed = 0;
  for (const auto& tier : reply.value("tiers", nlohmann::json::array()))
    if (const auto count = tier.find("removed"); count != tier.end() && count->is_number())
      removed += count->get<std::uint64_t>();
  reply["removed"] = removed;
  print_removed(arguments, std::move(reply));
  return exit_ok;
}

int rm(const StoreArguments& arguments) {
  const EmbeddingKey key = parse_key(arguments.key);
  if (!arguments.server.empty()) return rm_from_server(arguments);
  const auto store = look_at_store(arguments.store);
  const StoreResult result = store->batch_remove(std::span(&key, 1), {}).front();
  if (result.status == StoreStatus::absent) throw no_such_key(key);
  if (!result.ok()) throw store_fault(*store, result);
  print_removed(arguments, {{"removed", 1}});
  return exit_ok;
}

}  // namespace

void add_ls(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<StoreArguments>();
  CLI::App* command =
      app.add_subcommand("ls",
                         "list what a store holds: embeddings, and aliases, which are "
                         "further keys of the same embeddings");
  // Apart, since one of a file or the environment must not take the place of the word given here.
  auto named = std::make_shared<std::string>();
  command->add_option("STORE", *named, "the store (default: --store)")->type_name("URL");
  add_store_option(*command, *arguments);
  command->add_option("--limit", arguments->limit, "at most so many; 0: all")
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "one JSON object");
  command->callback([arguments, named, &exit_code] {
    if (!named->empty()) arguments->store = *named;
    exit_code = ls(*arguments);
  });
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
      ->type_name("URL")
      ->check(server_address);
  command->add_option("--api-key", arguments->api_key, "the server's admin key");
  command->add_flag("--json", arguments->json, "one JSON object");
  command->callback([arguments, &exit_code] { exit_code = rm(*arguments); });
}

}  // namespace vitrove::cli
