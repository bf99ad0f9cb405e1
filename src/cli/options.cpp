#include "cli/options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "vitrove/embedding_store_factory.h"
#include "vitrove/error.h"
#include "vitrove/units.h"

namespace vitrove::cli {
namespace {

struct Unit {
  const char* name;
  std::uint64_t factor;
};
// Nearest to how people spell them first.
constexpr std::array<Unit, 7> byte_units{{{"GiB", std::uint64_t{1} << 30},
                                          {"MiB", std::uint64_t{1} << 20},
                                          {"KiB", std::uint64_t{1} << 10},
                                          {"GB", 1'000'000'000},
                                          {"MB", 1'000'000},
                                          {"kB", 1'000},
                                          {"B", 1}}};
constexpr std::array<Unit, 3> time_units{{{"s", 1'000'000}, {"ms", 1'000}, {"us", 1}}};

// A default as it could be given: it reads back as exactly the same value.
std::string spelled(std::uint64_t value, std::span<const Unit> units) {
  const auto unit =
      std::ranges::find_if(units, [value](const Unit& each) { return value % each.factor == 0; });
  return std::to_string(value / unit->factor) + unit->name;
}

CLI::Option* add_with_unit(CLI::App& app, const std::string& name, const std::string& help,
                           const std::string& kind, const std::string& shown_default,
                           std::function<void(const std::string&)> assign) {
  auto parse = [name, assign = std::move(assign)](const std::string& text) {
    try {
      assign(text);
    } catch (const Error& error) {
      throw CLI::ValidationError(name, error.what());
    }
  };
  return app.add_option_function<std::string>(name, parse, help)
      ->type_name(kind)
      ->default_str(shown_default);
}

}  // namespace

std::string unit_words(const CLI::App& command) {
  constexpr std::array<std::pair<std::string_view, const char*>, 3> kinds{
      {{"TIME", "TIME: a number with us, ms, s, min, h or d; without a unit it is seconds.\n"},
       {"BYTES", "BYTES: a number with B, KiB, MiB, GiB, TiB, kB, MB, GB or TB; without, bytes.\n"},
       {"BYTES/s", "BYTES/s: the same, a second; \"/s\" may be left out.\n"}}};
  std::string words;
  for (const auto& [kind, sentence] : kinds) {
    const bool has_one = std::ranges::any_of(command.get_options(), [kind](const auto* option) {
      const std::string type = option->get_type_name();
      return type == kind || type.starts_with(std::string(kind) + ":");  // before what it checks
    });
    if (has_one) words += sentence;
  }
  return words;
}

std::string word_or_option(const std::string& word, const CLI::Option& option,
                           const std::string& value) {
  if (word.empty()) return value;
  if (option.count() > 0 && value != word)
    throw Error(ErrorCode::invalid_argument,
                "two are given where one is expected: " + redact_url(word) + ", and " +
                    option.get_name() + " " + redact_url(value));
  return word;
}

std::string not_negative(const std::string& text) {
  double number = 0;  // it reads all that the parser takes for a whole number: " -1", "-0x1"
  if (!CLI::detail::lexical_cast(text, number)) return {};  // the parser will say so
  return number < 0 ? "'" + text + "' is less than 0" : "";
}

std::string above_zero(const std::string& text) {
  double number = 0;
  if (!CLI::detail::lexical_cast(text, number)) return {};  // the parser will say so
  return std::isfinite(number) && number > 0 ? "" : "'" + text + "' is not a number above 0";
}

CLI::Option* add_bytes(CLI::App& app, const std::string& name, std::uint64_t& target,
                       const std::string& help) {
  return add_with_unit(app, name, help, "BYTES", spelled(target, byte_units),
                       [&target](const std::string& text) { target = parse_bytes(text); });
}

CLI::Option* add_duration(CLI::App& app, const std::string& name, std::chrono::microseconds& target,
                          const std::string& help) {
  return add_with_unit(app, name, help, "TIME",
                       spelled(static_cast<std::uint64_t>(target.count()), time_units),
                       [&target](const std::string& text) { target = parse_duration(text); });
}

CLI::Option* add_rate(CLI::App& app, const std::string& name, std::uint64_t& target,
                      const std::string& help) {
  return add_with_unit(app, name, help, "BYTES/s", spelled(target, byte_units) + "/s",
                       [&target](const std::string& text) { target = parse_rate(text); });
}

}  // namespace vitrove::cli
