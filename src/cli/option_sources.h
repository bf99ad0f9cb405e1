// Where options come from: flags, then the environment, then a TOML file. The environment and the
// file are turned into words of the command line for options that were not given as flags, so that
// every value goes through the same parser and the same checks.
//
//   --pool-size 4GiB      VITROVE_POOL_SIZE=4GiB      pool-size = "4GiB"
//   --store A --store B   VITROVE_STORE="A B"         store = ["A", "B"]
//   --pin-memory          VITROVE_PIN_MEMORY=1        pin-memory = true
//
// An option with several names may be given by any of them everywhere. The file's keys may stand in
// a table named like the subcommand ([serve], [bench.store]), or at the top for every subcommand
// that knows them; the table wins. A list of several at the top is for subcommands that take
// several, and overlooked by others. Keys and tables that none knows are Error{invalid_argument};
// so is a VITROVE_ variable with a bad value, but not an unknown one.
//
// Where a command takes as a word what an option of that name says as well, STORE and --store, the
// word is a flag.
//
// Of options that exclude each other, the one of the stronger source counts; of those of one source
// other than the flags, the one that the command names first.
//
// A value is taken as it is written: "[a,b]" is one text and no list, and "++" ends nothing. What
// follows "--" is no option, wherever "--" stands.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace vitrove::cli {

// `words`: the command line without the program's name. Gives what `app` is to parse next, whose
// options are prepared for that. Throws Error.
std::vector<std::string> with_option_sources(CLI::App& app, std::vector<std::string> words);

// What the parser says of such words, with the words as they were given.
std::string as_given(std::string message);

}  // namespace vitrove::cli
