#include "cli/given_words.h"

#include <algorithm>
#include <cctype>

#include <CLI/CLI.hpp>

namespace vitrove::cli {
namespace {

struct Spelled {
  std::string name;  // with its dashes; empty of what is no option
  std::size_t value_begin = std::string::npos;
};

// Else the parser takes the whole word for a plain one: "- a.png" may be a file.
bool may_begin_a_name(char letter) { return CLI::detail::valid_first_char(letter); }

Spelled spelled_option(const CLI::App& command, const std::string& word) {
  if (word.starts_with("--")) {
    if (word.size() < 3 || !may_begin_a_name(word[2])) return {};
    const std::size_t equals = word.find('=');
    return {word.substr(0, equals), equals == std::string::npos ? equals : equals + 1};
  }
  if (word.size() < 2 || !word.starts_with('-') || !may_begin_a_name(word[1])) return {};
  const std::string name = word.substr(0, 2);
  const bool is_digit = std::isdigit(static_cast<unsigned char>(word[1])) != 0;
  if (is_digit && command.get_option_no_throw(name) == nullptr) return {};  // a number below zero
  return {name, word.size() > 2 ? 2 : std::string::npos};
}

const CLI::Option* taker_of_plain_words(const CLI::App& command) {
  const auto options = command.get_options();
  const auto taker = std::ranges::find_if(options, &CLI::Option::get_positional);
  return taker == options.end() ? nullptr : *taker;
}

}  // namespace

std::vector<GivenWord> read_words(const CLI::App& command, std::span<const std::string> words) {
  std::vector<GivenWord> read(words.size(), {.option = taker_of_plain_words(command)});
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {
      read[i] = {GivenWord::Kind::end_of_options};
      break;
    }
    const Spelled spelled = spelled_option(command, words[i]);
    if (spelled.name.empty()) continue;
    const CLI::Option* option = command.get_option_no_throw(spelled.name);
    read[i] = {option == nullptr ? GivenWord::Kind::unknown_option : GivenWord::Kind::option,
               option, spelled.value_begin};
    const bool has_value = spelled.value_begin != std::string::npos;
    const bool takes_next = option != nullptr && !has_value && option->get_items_expected_max() > 0;
    if (takes_next && i + 1 < words.size()) read[++i] = {GivenWord::Kind::value, option};
  }
  return read;
}

}  // namespace vitrove::cli
