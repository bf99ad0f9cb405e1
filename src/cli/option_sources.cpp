#include "cli/option_sources.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include <CLI/CLI.hpp>
#include <toml++/toml.h>

#include "base/environment.h"
#include "cli/given_words.h"
#include "vitrove/error.h"

namespace vitrove::cli {
namespace {

using Words = std::vector<std::string>;

std::string environment_name(const std::string& option) {
  std::string name = "VITROVE_";
  for (const char c : option)
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

// Whether a plain word says what the option says: STORE is a --store.
bool is_word_of(const CLI::Option& plain, const CLI::Option& option) {
  const std::string name = plain.get_name(true);
  return plain.get_positional() &&
         std::ranges::any_of(option.get_lnames(), [&name](const std::string& each) {
           return environment_name(each) == "VITROVE_" + name;
         });
}

// The words after the command's name, and what they are.
class Line {
 public:
  Line(const CLI::App& command, Words words)
      : command_(command), words_(std::move(words)), read_(read_words(command_, words_)) {}

  // Under any of its names, short or long, or as a plain word.
  bool has(const CLI::Option& option) const {
    return std::ranges::any_of(read_, [&option](const GivenWord& word) {
      return word.option != nullptr && (word.option == &option || is_word_of(*word.option, option));
    });
  }
  // Nor another that it excludes.
  bool may_have(const CLI::Option& option) const {
    return !has(option) && std::ranges::none_of(option.get_excludes(),
                                                [this](const auto* other) { return has(*other); });
  }
  std::optional<std::string> value_of(const CLI::Option& option) const {
    const auto at = std::ranges::find_if(read_,
                                         [&option](const GivenWord& word) {
                                           return word.kind == GivenWord::Kind::option &&
                                                  word.option == &option;
                                         }) -
                    read_.begin();
    if (at == std::ssize(read_)) return std::nullopt;
    const auto index = static_cast<std::size_t>(at);
    const std::size_t begin = read_[index].value_begin;
    if (begin != std::string::npos) return words_[index].substr(begin);
    if (index + 1 < words_.size()) return words_[index + 1];
    return std::nullopt;
  }

  // Before the others, since they may end with "--".
  void put_first(const Words& more) {
    words_.insert(words_.begin(), more.begin(), more.end());
    read_ = read_words(command_, words_);
  }

  const Words& words() const { return words_; }
  const GivenWord& read(std::size_t index) const { return read_[index]; }

 private:
  const CLI::App& command_;
  Words words_;
  std::vector<GivenWord> read_;
};

bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }
bool is_repeatable(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

bool parse_bool(const std::string& text, const std::string& where) {
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "1" || lower == "true" || lower == "yes" || lower == "on") return true;
  if (lower.empty() || lower == "0" || lower == "false" || lower == "no" || lower == "off")
    return false;
  throw Error(ErrorCode::invalid_argument, where + " is not true or false: " + text);
}

void append(Words& out, const CLI::Option& option, const std::string& name,
            const std::vector<std::string>& values, const std::string& where) {
  if (is_flag(option)) {
    if (!values.empty() && parse_bool(values.front(), where)) out.push_back("--" + name);
    return;
  }
  // An empty word would make the parser take the next one as this option's value; and a key that is
  // empty by mistake must not leave a server open.
  if (values.empty() || std::ranges::any_of(values, &std::string::empty))
    throw Error(ErrorCode::invalid_argument, where + " is empty: give a value or leave it out");
  for (const std::string& value : values)
    out.push_back(std::string("--").append(name).append("=").append(value));
}

std::vector<std::string> split_words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// Every digit, and no exponent: sizes and durations know none.
std::string float_text(double number) {
  std::array<char, 512> text;
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  return {text.data(), end};
}

std::string toml_text(const toml::node& node, const std::string& key) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto number = node.value_exact<std::int64_t>()) return std::to_string(*number);
  if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  if (const auto number = node.value_exact<double>()) return float_text(*number);
  throw Error(ErrorCode::invalid_argument, "configuration file: '" + key + "' has an odd type");
}

std::vector<std::string> toml_values(const toml::node& node, const std::string& key) {
  if (const toml::array* list = node.as_array()) {
    std::vector<std::string> values;
    for (const toml::node& element : *list) values.push_back(toml_text(element, key));
    return values;
  }
  return {toml_text(node, key)};
}

toml::table read_toml(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw Error(ErrorCode::invalid_argument, "configuration file " + path + ": is a directory");
  try {
    return toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    std::ostringstream where;
    where << "configuration file " << path << ": " << error.description() << " ("
          << error.source().begin << ")";
    throw Error(ErrorCode::invalid_argument, where.str());
  }
}

// Of a command that takes one.
std::optional<std::string> config_path(const CLI::App& command, const Line& line) {
  const CLI::Option* option = command.get_option_no_throw("--config");
  if (option == nullptr) return std::nullopt;
  const auto given = line.value_of(*option);
  return given ? given : environment("VITROVE_CONFIG");
}

using Commands = std::vector<CLI::App*>;

CLI::App* subcommand(CLI::App& group, std::string_view name) {
  const auto named =
      group.get_subcommands([name](const CLI::App* each) { return each->get_name() == name; });
  return named.empty() ? nullptr : named.front();
}

// The commands that the first words name, each one of the last: "serve", or "bench" and "store".
Commands chosen_commands(CLI::App& app, const Words& words) {
  Commands chosen;
  CLI::App* command = &app;
  for (const std::string& word : words) {
    command = subcommand(*command, word);
    if (command == nullptr) break;
    chosen.push_back(command);
  }
  return chosen;
}

bool any_command_knows(const CLI::App& group, const std::string& option) {
  return std::ranges::any_of(group.get_subcommands({}), [&](const CLI::App* command) {
    return command->get_option_no_throw("--" + option) != nullptr ||
           any_command_knows(*command, option);
  });
}

// The first of the option's long names that is set.
void add_environment(Words& out, const CLI::Option& option) {
  for (const std::string& name : option.get_lnames()) {
    const std::string variable = environment_name(name);
    const auto value = environment(variable);
    if (!value) continue;
    append(out, option, name, is_repeatable(option) ? split_words(*value) : Words{*value},
           variable);
    return;
  }
}

// What a configuration file says to one command: the command's own table first, then those of the
// groups that it is in, then the top; and of an option's names in one table, the first.
class ConfigFile {
 public:
  ConfigFile(CLI::App& app, const Commands& commands)
      : app_(app), commands_(commands), command_(*commands.back()) {}

  // Of options that were not given otherwise.
  void add_to(Line& line, const toml::table& file) {
    tables_.push_back(&file);
    check_tables(app_, file);
    for (std::size_t i = 0; i < commands_.size(); ++i) {
      const toml::node* inner = tables_.back()->get(commands_[i]->get_name());
      if (inner == nullptr || !inner->is_table()) break;
      tables_.push_back(inner->as_table());
      check_tables(*commands_[i], *tables_.back());
    }
    for (const CLI::Option* option : command_.get_options()) {
      Words words;
      if (line.may_have(*option)) add(words, *option);
      line.put_first(words);
    }
  }

 private:
  bool is_own(const toml::table& table) const {
    return tables_.size() == commands_.size() + 1 && &table == tables_.back();
  }
  static bool is_reserved(const std::string& name) { return name == "config" || name == "help"; }
  bool knows(const std::string& name) const {
    return !is_reserved(name) && command_.get_option_no_throw("--" + name) != nullptr;
  }

  std::string full_name() const {
    std::string name;
    for (const CLI::App* command : commands_)
      name += (name.empty() ? "" : " ") + command->get_name();
    return name;
  }

  // `group`: whose table it is. What only others know is their business.
  void check_tables(CLI::App& group, const toml::table& table) const {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (node.is_table()) {
        if (subcommand(group, name) == nullptr)
          throw Error(ErrorCode::invalid_argument,
                      "configuration file: there is no command for the table '" + name + "'");
        continue;
      }
      const bool is_others = !is_own(table) && !is_reserved(name) && any_command_knows(group, name);
      if (!knows(name) && !is_others)
        throw Error(ErrorCode::invalid_argument, "configuration file: unknown option '" + name +
                                                     "'; 'vitrove " + full_name() +
                                                     " --help' lists them");
    }
  }

  void add(Words& words, const CLI::Option& option) const {
    for (auto table = tables_.rbegin(); table != tables_.rend(); ++table) {
      for (const std::string& name : option.get_lnames()) {
        const toml::node* node = (*table)->get(name);
        if (node == nullptr || node->is_table()) continue;
        const std::vector<std::string> values = toml_values(*node, name);
        // Meant for commands that take several. Which one another should take, who knows.
        if (values.size() > 1 && !is_repeatable(option) && !is_own(**table)) return;
        return append(words, option, name, values, "configuration file: '" + name + "'");
      }
    }
  }

  CLI::App& app_;
  const Commands& commands_;
  const CLI::App& command_;
  std::vector<const toml::table*> tables_;  // the top, and inwards
};

// The parser splits a value in brackets into a list, and a plain "++" ends the command for it. With
// this before them they are what they are.
constexpr char as_written = '\x01';

bool needs_mark(std::string_view value) {
  return value.starts_with('[') || value.starts_with(as_written) || value == "++";
}

// What follows an option's name, or the whole word; not what is said to a flag.
void mark(std::string& word, const GivenWord& read) {
  if (read.kind == GivenWord::Kind::option && is_flag(*read.option)) return;
  const std::size_t begin = read.value_begin == std::string::npos ? 0 : read.value_begin;
  if (needs_mark(std::string_view(word).substr(begin))) word.insert(begin, 1, as_written);
}

// Of values and plain words, what the parser would take for something else; and all that follows
// "--", which is then left out: the parser lets it end the options only before the first plain
// word, and the command after it.
Words marked(const CLI::App& command, const Line& line) {
  const bool takes_plain_words =
      std::ranges::any_of(command.get_options(), &CLI::Option::get_positional);
  Words words;
  bool is_after_end = false;
  for (std::size_t i = 0; i < line.words().size(); ++i) {
    std::string word = line.words()[i];
    const bool is_end = line.read(i).kind == GivenWord::Kind::end_of_options;
    if (is_end && takes_plain_words) {
      is_after_end = true;
      continue;
    }
    if (is_after_end) {
      word.insert(0, 1, as_written);
    } else {
      mark(word, line.read(i));
    }
    words.push_back(std::move(word));
  }
  return words;
}

std::string unmarked(std::string value) {
  if (value.starts_with(as_written)) value.erase(0, 1);
  return value;
}

// The parser would take the next word for the value of "--store=".
void refuse_empty_values_of(const Line& line) {
  for (std::size_t i = 0; i < line.words().size(); ++i) {
    const std::string& word = line.words()[i];
    const GivenWord& read = line.read(i);
    if (read.kind == GivenWord::Kind::option && read.value_begin == word.size())
      throw Error(ErrorCode::invalid_argument,
                  word.substr(0, word.size() - 1) + " is empty: give a value or leave it out");
  }
}

}  // namespace

std::vector<std::string> with_option_sources(CLI::App& app, Words words) {
  const Commands commands = chosen_commands(app, words);
  if (commands.empty()) return words;
  CLI::App* command = commands.back();
  const auto first_option = words.begin() + std::ssize(commands);
  Line line(*command, Words(first_option, words.end()));
  refuse_empty_values_of(line);

  const auto path = config_path(*command, line);
  for (const CLI::Option* option : command->get_options()) {
    Words extra;
    if (line.may_have(*option) && !option->check_lname("help")) add_environment(extra, *option);
    line.put_first(extra);
  }
  if (path) ConfigFile(app, commands).add_to(line, read_toml(*path));
  words.erase(first_option, words.end());
  std::ranges::move(marked(*command, line), std::back_inserter(words));
  for (CLI::Option* option : command->get_options()) option->transform(unmarked);
  return words;
}

std::string as_given(std::string message) {
  std::erase(message, as_written);
  return message;
}

}  // namespace vitrove::cli
