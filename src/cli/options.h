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

// For check(): of numbers, where the parser alone would take -1 for the largest there is.
std::string not_negative(const std::string& text);
std::string above_zero(const std::string& text);

}  // namespace vitrove::cli
