#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/option_sources.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/unknown_words.h"
#include "vitrove/error.h"

namespace vitrove::cli {
namespace {

constexpr const char* description =
    "Vitrove: encode each image of a cluster once.\n"
    "Every option can also stand in the environment (--pool-size is VITROVE_POOL_SIZE) or in a\n"
    "TOML file given by --config; flags win over the environment, and that over the file.";

// To all that are no groups of others.
void add_config_option(CLI::App& command) {
  const auto inner = command.get_subcommands({});
  for (CLI::App* each : inner) add_config_option(*each);
  if (inner.empty())
    command.add_option("--config", "TOML file with these options")->type_name("FILE");
}

// An empty word is a variable that is not set, most likely, and must not mean the default.
void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;
    option->check([](const std::string& value) {
      return value.empty() ? "is empty: give a value or leave it out" : std::string();
    });
  }
  for (CLI::App* command : app.get_subcommands({})) refuse_empty_values(*command);
}

void add_footers(CLI::App& app) {
  app.footer(unit_words(app) + exit_codes);
  for (CLI::App* command : app.get_subcommands({})) add_footers(*command);
}

// What CLI11 says in one line, whatever it is.
std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  while (text.ends_with(' ')) text.pop_back();
  return shown(as_given(std::move(text)));
}

std::string command_line_of(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return app.get_name() + (chosen.empty() ? "" : " " + command_line_of(*chosen.front()));
}

// Lists are given by repeating the option: else it would take for its own the files that follow.
void take_one_value_each(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const bool is_list = !option->get_positional() && option->get_items_expected_max() > 1;
    if (is_list) option->allow_extra_args(false);
  }
  for (CLI::App* command : app.get_subcommands({})) take_one_value_each(*command);
}

int run(int argc, char** argv) {
  CLI::App app{description, "vitrove"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "vitrove " VITROVE_VERSION);
  int exit_code = exit_ok;
  add_serve(app, exit_code);
  add_encode(app, exit_code);
  add_ls(app, exit_code);
  add_stat(app, exit_code);
  add_get(app, exit_code);
  add_rm(app, exit_code);
  add_flush(app, exit_code);
  add_stats(app, exit_code);
  add_doctor(app, exit_code);
  add_bench(app, exit_code);

  add_config_option(app);
  take_one_value_each(app);
  refuse_empty_values(app);
  add_footers(app);

  std::vector<std::string> given(argv + 1, argv + argc);
  if (!given.empty() && given.front() == "--version") given.resize(1);  // whatever follows
  refuse_unknown_words(app, given);
  try {
    std::vector<std::string> words = with_option_sources(app, given);
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 wants them reversed
  } catch (const CLI::Success& success) {                               // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::invalid_argument,
                one_line(error.what()) + "; see `" + command_line_of(app) + " --help`");
  }
  return exit_code;
}

int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return exit_usage;
    case ErrorCode::not_found:
      return exit_not_found;
    case ErrorCode::unavailable:
    case ErrorCode::queue_full:
    case ErrorCode::deadline_exceeded:
    case ErrorCode::media_fetch_failed:
      return exit_unreachable;
    default:
      return exit_failed;
  }
}

// One line for people, and for scripts that asked for it one object.
int report(int argc, char** argv, const Error& error) {
  std::fprintf(stderr, "vitrove: %s\n", message_of(error).c_str());
  const bool as_json = std::any_of(
      argv, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
  if (as_json) {
    const nlohmann::json fact{{"code", to_string(error.code())}, {"message", message_of(error)}};
    std::puts(json_line({{"error", fact}}).c_str());
  }
  return exit_code_of(error.code());
}

}  // namespace
}  // namespace vitrove::cli

int main(int argc, char** argv) {
  // As encoders/onnx/ort_library.h does; here before there is a second thread.
  ::setenv("ORT_DISABLE_TELEMETRY", "1", 0);  // NOLINT(concurrency-mt-unsafe)
  try {
    // What is wrong is told by one line at the end; `serve` and `encode` set their own level.
    vitrove::set_up_logging(spdlog::level::err, vitrove::LogFormat::text);
    return vitrove::cli::run(argc, argv);
  } catch (const vitrove::Error& error) {
    return vitrove::cli::report(argc, argv, error);
  } catch (const std::exception& error) {
    return vitrove::cli::report(argc, argv, {vitrove::ErrorCode::internal, error.what()});
  }
}
