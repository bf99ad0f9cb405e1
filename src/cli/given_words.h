// The words of a command's line, read as the parser will read them: so that a value that looks like
// an option is taken for a value everywhere.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace vitrove::cli {

struct GivenWord {
  enum class Kind : std::uint8_t {
    option,          // "--port", "--port=1", "-j", "-j4"
    unknown_option,  // the same of none that the command has
    value,           // of the option before it
    end_of_options,  // "--": what follows is plain
    plain
  };
  Kind kind = Kind::plain;
  // Of an option and its value; of a plain word the one that takes such, if the command has one.
  const CLI::Option* option = nullptr;
  // Where in the word of an option its value begins: behind "--port=", behind "-j".
  std::size_t value_begin = std::string::npos;
};

// One for each word. `words`: what follows the command's name.
std::vector<GivenWord> read_words(const CLI::App& command, std::span<const std::string> words);

}  // namespace vitrove::cli
