#include "vitrove/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <span>

#include "vitrove/error.h"

namespace vitrove {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array<Unit, 11> byte_units{{{"", 1},
                                           {"B", 1},
                                           {"KiB", std::uint64_t{1} << 10},
                                           {"MiB", std::uint64_t{1} << 20},
                                           {"GiB", std::uint64_t{1} << 30},
                                           {"TiB", std::uint64_t{1} << 40},
                                           {"kB", 1000},
                                           {"KB", 1000},
                                           {"MB", 1000'000},
                                           {"GB", 1000'000'000},
                                           {"TB", 1000'000'000'000}}};

constexpr std::array<Unit, 8> duration_units{{{"", 1000'000},
                                              {"us", 1},
                                              {"ms", 1000},
                                              {"s", 1000'000},
                                              {"m", 60'000'000},
                                              {"min", 60'000'000},
                                              {"h", 3600'000'000},
                                              {"d", 86400'000'000}}};

// Digits, at most one point with digits on both sides, at most one space, a unit. Locale-free.
std::optional<std::uint64_t> scaled(std::string_view text, std::span<const Unit> units) {
  const char* const end = text.data() + text.size();
  std::uint64_t whole = 0;
  const auto [after_whole, error] = std::from_chars(text.data(), end, whole);
  if (error != std::errc{}) return std::nullopt;
  const char* rest = after_whole;

  double fraction = 0;
  if (rest != end && *rest == '.') {
    const char* const digits = ++rest;
    double weight = 0.1;
    for (; rest != end && *rest >= '0' && *rest <= '9'; ++rest, weight /= 10) {
      fraction += (*rest - '0') * weight;
    }
    if (rest == digits) return std::nullopt;
  }
  if (rest != end && *rest == ' ') {
    if (++rest == end) return std::nullopt;
  }

  const std::string_view name(rest, static_cast<std::size_t>(end - rest));
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    const auto part =
        static_cast<std::uint64_t>(std::llround(fraction * static_cast<double>(unit.factor)));
    std::uint64_t result = 0;
    if (__builtin_mul_overflow(whole, unit.factor, &result)) return std::nullopt;
    if (__builtin_add_overflow(result, part, &result)) return std::nullopt;
    return result;
  }
  return std::nullopt;
}

[[noreturn]] void refuse(std::string_view text, std::string_view what, std::string_view expected) {
  constexpr std::size_t shown = 40;  // a hostile megabyte does not belong in a message
  std::string message = "'";
  message.append(text.substr(0, shown)).append(text.size() > shown ? "...' is not " : "' is not ");
  message.append(what).append(": a number and ").append(expected);
  throw Error(ErrorCode::invalid_argument, message);
}

// `value` in the largest unit that keeps it at one or above, with one decimal.
std::string scaled_text(double value, std::span<const Unit> rising) {
  std::size_t i = 0;
  // 1023.96 KiB would be shown as "1024.0 KiB": round before choosing.
  const auto shown = [&] {
    return std::round(value / static_cast<double>(rising[i].factor) * 10) / 10;
  };
  while (i + 1 < rising.size() && shown() >= static_cast<double>(rising[i + 1].factor) /
                                                 static_cast<double>(rising[i].factor)) {
    ++i;
  }
  std::array<char, 64> buffer;
  const int length = std::snprintf(buffer.data(), buffer.size(), i == 0 ? "%.0f " : "%.1f ",
                                   value / static_cast<double>(rising[i].factor));
  return std::string(buffer.data(), static_cast<std::size_t>(length)).append(rising[i].name);
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text) {
  if (const auto bytes = scaled(text, byte_units)) return *bytes;
  refuse(text, "a size", "B, KiB, MiB, GiB, TiB, kB, MB, GB or TB, such as 4GiB");
}

std::chrono::microseconds parse_duration(std::string_view text) {
  const auto us = scaled(text, duration_units);
  if (us && *us <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return std::chrono::microseconds(static_cast<std::int64_t>(*us));
  }
  refuse(text, "a duration", "us, ms, s, min, h or d, such as 200ms or 1.5s");
}

std::uint64_t parse_rate(std::string_view text) {
  std::string_view size = text;
  if (size.ends_with("/s")) size.remove_suffix(2);
  if (const auto bytes = scaled(size, byte_units)) return *bytes;
  refuse(text, "a rate", "KiB/s, MiB/s, GiB/s, kB/s, MB/s or GB/s, such as 200MB/s");
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<Unit, 5> rising{{{"B", 1},
                                        {"KiB", std::uint64_t{1} << 10},
                                        {"MiB", std::uint64_t{1} << 20},
                                        {"GiB", std::uint64_t{1} << 30},
                                        {"TiB", std::uint64_t{1} << 40}}};
  return scaled_text(static_cast<double>(bytes), rising);
}

std::string format_duration(std::chrono::microseconds duration) {
  constexpr std::array<Unit, 5> rising{
      {{"us", 1}, {"ms", 1000}, {"s", 1000'000}, {"min", 60'000'000}, {"h", 3600'000'000}}};
  if (duration.count() >= 0) return scaled_text(static_cast<double>(duration.count()), rising);
  return "-" + scaled_text(-static_cast<double>(duration.count()), rising);
}

}  // namespace vitrove
