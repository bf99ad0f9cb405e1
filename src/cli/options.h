// Helpers to declare options whose values have units: the parser's message names the option, and
// --help shows the default as a person would write it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>

namespace vitrove::cli {

CLI::Option* add_bytes(CLI::App& app, const std::string& name, std::uint64_t& target,
                       const std::string& help);
CLI::Option* add_duration(CLI::App& app, const std::string& name, std::chrono::microseconds& target,
                          const std::string& help);
CLI::Option* add_rate(CLI::App& app, const std::string& name, std::uint64_t& target,
                      const std::string& help);

// What values with units may look like, for the help of a command that has such; else empty.
std::string unit_words(const CLI::App& command);

// Of a command that takes what it works on as a word or by an option: the one of them that is
// given, else the option's default. Both may be, if they say the same; else
// Error{invalid_argument}. `value`: the option's.
std::string word_or_option(const std::string& word, const CLI::Option& option,
                           const std::string& value);

// For check(): of numbers, where the parser alone would take -1 for the largest there is.
std::string not_negative(const std::string& text);
std::string above_zero(const std::string& text);

}  // namespace vitrove::cli
