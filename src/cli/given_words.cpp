#include "cli/given_words.h"

#include <cctype>
#include <string_view>

#include <CLI/CLI.hpp>

namespace vitrove::cli {
namespace {

struct Spelled {
  std::string name;  // with its dashes; empty of what is no option
  bool has_value = false;
};

Spelled spelled_option(const CLI::App& command, const std::string& word) {
  if (word.starts_with("--")) {
    if (word.starts_with("---")) return {};
    const std::size_t equals = word.find('=');
    return {word.substr(0, equals), equals != std::string::npos};
  }
  if (word.size() < 2 || !word.starts_with('-')) return {};
  const std::string name = word.substr(0, 2);
  const bool is_digit = std::isdigit(static_cast<unsigned char>(word[1])) != 0;
  if (is_digit && command.get_option_no_throw(name) == nullptr) return {};  // a number below zero
  return {name, word.size() > 2};
}

}  // namespace

std::vector<GivenWord> read_words(const CLI::App& command, std::span<const std::string> words) {
  std::vector<GivenWord> read(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {
      read[i].kind = GivenWord::Kind::end_of_options;
      break;
    }
    const Spelled spelled = spelled_option(command, words[i]);
    if (spelled.name.empty()) continue;
    const CLI::Option* option = command.get_option_no_throw(spelled.name);
    read[i] = {option == nullptr ? GivenWord::Kind::unknown_option : GivenWord::Kind::option,
               option};
    const bool takes_next =
        option != nullptr && !spelled.has_value && option->get_items_expected_max() > 0;
    if (takes_next && i + 1 < words.size()) read[++i] = {GivenWord::Kind::value, option};
  }
  return read;
}

}  // namespace vitrove::cli
