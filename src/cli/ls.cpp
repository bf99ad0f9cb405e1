// vitrove ls: what a store holds, read straight from the store, no server needed.

#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/store_access.h"
#include "vitrove/error.h"
#include "vitrove/units.h"

namespace vitrove::cli {
namespace {

struct LsArguments {
  std::string store;
  bool json = false;
  std::size_t limit = 0;
};

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
    std::printf("%s, %s of them", counted(embeddings_, "embedding", "embeddings").c_str(),
                counted(aliases_, "alias", "aliases").c_str());
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

int ls(const LsArguments& arguments) {
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

}  // namespace

void add_ls(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<LsArguments>();
  CLI::App* command =
      app.add_subcommand("ls",
                         "list what a store holds: embeddings, and aliases, which are "
                         "further keys of the same embeddings");
  auto word = std::make_shared<std::string>();
  command->add_option("STORE", *word, "the store (default: --store)")->type_name("URL");
  const CLI::Option* named = add_store_option(*command, arguments->store);
  command->add_option("--limit", arguments->limit, "at most so many; 0: all")
      ->capture_default_str()
      ->check(not_negative);
  command->add_flag("--json", arguments->json, "one JSON object");
  command->callback([arguments, word, named, &exit_code] {
    arguments->store = word_or_option(*word, *named, arguments->store);
    exit_code = ls(*arguments);
  });
}

}  // namespace vitrove::cli
