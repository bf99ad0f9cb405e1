#include "encoders/stub/stub_options.h"

#include <charconv>
#include <set>
#include <string>

#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr std::uint32_t max_dim = 1 << 20;
constexpr std::uint32_t max_tokens = 1 << 24;
constexpr std::uint64_t max_bytes = std::uint64_t{8} << 30;
constexpr std::uint64_t max_delay_ms = 3'600'000;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::invalid_argument, "stub encoder: " + what);
}

[[noreturn]] void refuse_value(std::string_view name, std::string_view value,
                               const std::string& wanted) {
  refuse("option " + std::string(name) + " must be " + wanted + ", not '" + std::string(value) +
         "'");
}

std::uint64_t parse_number(std::string_view name, std::string_view text, std::uint64_t least,
                           std::uint64_t most) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stopped != end || number < least || number > most) {
    refuse_value(name, text,
                 "a number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return number;
}

void parse_tokens(std::string_view text, StubOptions& options) {
  const auto dash = text.find('-');
  const std::string_view least = text.substr(0, dash);
  const std::string_view most = dash == std::string_view::npos ? least : text.substr(dash + 1);
  options.min_tokens = static_cast<std::uint32_t>(parse_number("tokens", least, 1, max_tokens));
  options.max_tokens = static_cast<std::uint32_t>(parse_number("tokens", most, 1, max_tokens));
  if (options.min_tokens > options.max_tokens) {
    refuse_value("tokens", text, "MIN-MAX with MIN no larger than MAX");
  }
}

void parse_failure(std::string_view text, StubOptions& options) {
  if (text == "error") {
    options.failure = StubFailure::error;
  } else if (text == "nan") {
    options.failure = StubFailure::nan;
  } else if (text == "short") {
    options.failure = StubFailure::short_rows;
  } else if (text == "first") {
    options.failure = StubFailure::error;
    options.fail_count = 1;
  } else {
    refuse_value("fail", text, "error, nan, short or first");
  }
}

void apply(std::string_view name, std::string_view value, StubOptions& options) {
  constexpr auto any = std::numeric_limits<std::uint64_t>::max();
  if (name == "dim") {
    options.dim = static_cast<std::uint32_t>(parse_number(name, value, 1, max_dim));
  } else if (name == "tokens") {
    parse_tokens(value, options);
  } else if (name == "seed") {
    options.seed = parse_number(name, value, 0, any);
  } else if (name == "dtype") {
    const auto dtype = parse_dtype(value);
    if (!dtype) refuse_value(name, value, "float32, float16 or bfloat16");
    options.dtype = *dtype;
  } else if (name == "delay_ms") {
    options.delay = std::chrono::milliseconds(parse_number(name, value, 0, max_delay_ms));
  } else if (name == "fail") {
    parse_failure(value, options);
  } else if (name == "fail_count") {
    options.fail_count = parse_number(name, value, 1, any);
  } else {
    refuse("unknown option '" + std::string(name) +
           "' (known: dim, tokens, seed, dtype, delay_ms, fail, fail_count)");
  }
}

// What an option cannot know by itself.
void check_together(const StubOptions& options, const std::set<std::string_view>& given,
                    bool fail_first) {
  if (given.contains("fail_count") && (fail_first || !given.contains("fail"))) {
    refuse("option fail_count goes with fail=error, fail=nan or fail=short");
  }
  const std::uint64_t bytes =
      std::uint64_t{options.max_tokens} * options.dim * element_size(options.dtype);
  if (bytes > max_bytes) refuse("tokens times dim is more than 8 GiB an item");
}

}  // namespace

StubOptions parse_stub_options(std::string_view text) {
  StubOptions options;
  std::set<std::string_view> given;
  bool fail_first = false;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string_view option = text.substr(0, comma);
    const auto equals = option.find('=');
    if (equals == std::string_view::npos) {
      refuse("'" + std::string(option) + "' is not NAME=VALUE");
    }
    const std::string_view name = option.substr(0, equals);
    const std::string_view value = option.substr(equals + 1);
    if (!given.insert(name).second) refuse("option " + std::string(name) + " is given twice");
    fail_first = fail_first || (name == "fail" && value == "first");
    apply(name, value, options);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) refuse("an option is missing after the last comma");
  }
  check_together(options, given, fail_first);
  return options;
}

}  // namespace vitrove
