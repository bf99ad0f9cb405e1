#include "base/log.h"

#include <array>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/pattern_formatter.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "base/patient_sink.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr auto logger_name = "vitrove";
// For a reader that is slow; one that is away is not waited for again.
constexpr std::chrono::milliseconds stderr_patience{1000};

constexpr std::array<std::pair<std::string_view, spdlog::level::level_enum>, 7> levels{
    {{"trace", spdlog::level::trace},
     {"debug", spdlog::level::debug},
     {"info", spdlog::level::info},
     {"warning", spdlog::level::warn},
     {"error", spdlog::level::err},
     {"critical", spdlog::level::critical},
     {"off", spdlog::level::off}}};

std::string_view level_name(spdlog::level::level_enum level) {
  for (const auto& [name, value] : levels) {
    if (value == level) return name;
  }
  return "info";
}

// The message with control characters spelled out, as pattern flag %*.
class OneLineMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    for (const char c : message.payload) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x20 && byte != 0x7f) {
        out.push_back(c);
      } else {
        fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
      }
    }
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<OneLineMessage>();
  }
};

// The same, as a JSON string with its quotes, as pattern flag %*.
class JsonMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const nlohmann::json text = std::string(message.payload.data(), message.payload.size());
    const std::string quoted = text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    out.append(quoted.data(), quoted.data() + quoted.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<JsonMessage>();
  }
};

// "warning" and not spdlog's "warn", as it is spelled in --log-level; as pattern flag %$.
class LevelName final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string_view name = level_name(message.level);
    out.append(name.data(), name.data() + name.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<LevelName>();
  }
};

}  // namespace

spdlog::level::level_enum parse_log_level(std::string_view text) {
  for (const auto& [name, value] : levels) {
    if (name == text) return value;
  }
  throw Error(ErrorCode::invalid_argument,
              "unknown log level (known: trace, debug, info, warning, error, critical, off)");
}

LogFormat parse_log_format(std::string_view text) {
  if (text == "text") return LogFormat::text;
  if (text == "json") return LogFormat::json;
  throw Error(ErrorCode::invalid_argument, "unknown log format (known: text, json)");
}

std::unique_ptr<spdlog::formatter> make_log_formatter(LogFormat format) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<LevelName>('$');
  if (format == LogFormat::json) {
    formatter->add_flag<JsonMessage>('*');
    formatter->set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%$","message":%*})");
  } else {
    formatter->add_flag<OneLineMessage>('*');
    formatter->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %$ %*");
  }
  return formatter;
}

void set_up_logging(spdlog::level::level_enum level, LogFormat format) {
  auto sink = std::make_shared<PatientSink>(STDERR_FILENO, stderr_patience);
  auto fresh = std::make_shared<spdlog::logger>(logger_name, std::move(sink));
  fresh->set_formatter(make_log_formatter(format));
  fresh->set_level(level);
  spdlog::drop(logger_name);
  spdlog::register_logger(std::move(fresh));
}

std::shared_ptr<spdlog::logger> logger() {
  if (auto named = spdlog::get(logger_name)) return named;
  return spdlog::default_logger();
}

void try_log_error(std::string_view what, std::string_view why) noexcept {
  try {
    logger()->error("{}: {}", what, why);
  } catch (...) {
    // Want of memory, mostly; there is nobody left to tell.
    return;
  }
}

std::optional<std::uint64_t> LogThrottle::allow(Clock::time_point now) {
  const Clock::rep ticks = now.time_since_epoch().count();
  Clock::rep next = next_.load(std::memory_order_relaxed);
  // Of several threads that find it time to speak, the one that moves the mark does.
  if (ticks < next ||
      !next_.compare_exchange_strong(next, ticks + interval_.count(), std::memory_order_relaxed)) {
    silent_.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
  }
  return silent_.exchange(0, std::memory_order_relaxed);
}

void LogThrottle::say(spdlog::level::level_enum level, std::string_view message,
                      std::uint64_t silent) {
  if (silent == 0) {
    logger()->log(level, message);
  } else {
    logger()->log(level, "{} ({} more of these were not shown)", message, silent);
  }
}

}  // namespace vitrove
