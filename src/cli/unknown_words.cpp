#include "cli/unknown_words.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/given_words.h"
#include "cli/output.h"
#include "cli/suggestion.h"
#include "vitrove/error.h"

namespace vitrove::cli {
namespace {

constexpr std::size_t shown_of_word = 40;

std::vector<std::string> commands_of(const CLI::App& group) {
  std::vector<std::string> names;
  const auto all = [](const CLI::App*) { return true; };
  for (const CLI::App* command : group.get_subcommands(all)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  return names;
}

// "; did you mean `bench store`? `vitrove bench --help` lists them"
[[noreturn]] void refuse(const std::string& what, const std::string& meant,
                         const std::string& path) {
  const std::string question = meant.empty() ? "" : "; did you mean " + meant + "?";
  throw Error(ErrorCode::invalid_argument,
              what + question + (meant.empty() ? "; `" : " `") + path + " --help` lists them");
}

void refuse_unknown_options(const CLI::App& command, std::span<const std::string> words,
                            const std::string& path) {
  const std::vector<GivenWord> read = read_words(command, words);
  const auto unknown =
      std::ranges::find(read, GivenWord::Kind::unknown_option, &GivenWord::kind) - read.begin();
  if (unknown == std::ssize(read)) return;
  const std::string& word = words[static_cast<std::size_t>(unknown)];
  if (!word.starts_with("--")) refuse("there is no option " + shown(word.substr(0, 2)), {}, path);
  const std::string name = word.substr(0, word.find('='));
  const std::string meant = nearest(name.substr(2), options_of(command));
  refuse("there is no option " + shown(name, shown_of_word), meant.empty() ? meant : "--" + meant,
         path);
}

bool asks_for_help(std::span<const std::string> words) {
  return std::ranges::any_of(
      words, [](const std::string& word) { return word == "--help" || word == "-h"; });
}

}  // namespace

void refuse_unknown_words(const CLI::App& app, std::span<const std::string> words) {
  const CLI::App* command = &app;
  std::string path = app.get_name();
  while (!words.empty() && !words.front().starts_with('-')) {
    const std::vector<std::string> names = commands_of(*command);
    if (names.empty()) break;
    const std::string& word = words.front();
    if (std::ranges::find(names, word) == names.end()) {
      const std::string meant = nearest(word, names);
      refuse("there is no command '" + shown(word, shown_of_word) + "'",
             meant.empty() ? meant : std::string("`").append(path).append(" ").append(meant) + "`",
             path);
    }
    command = command->get_subcommand(word);
    path += " " + word;
    words = words.subspan(1);
  }
  if (!asks_for_help(words)) refuse_unknown_options(*command, words, path);
}

}  // namespace vitrove::cli
