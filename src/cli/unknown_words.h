// Words of the command line that no command and no option has, told before anything else that may
// be wrong with it, with the name that was meant most likely.
#pragma once

#include <span>
#include <string>

namespace CLI {
class App;
}

namespace vitrove::cli {

// `words`: the command line without the program's name. Throws Error{invalid_argument}. Who asks
// a command for --help is not told of its options.
void refuse_unknown_words(const CLI::App& app, std::span<const std::string> words);

}  // namespace vitrove::cli
