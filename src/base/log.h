// Logging, on spdlog: one named logger that an embedding application may replace.
//
// A line of the text format never spans lines: control characters of a message are escaped, so that
// nobody can forge log lines through a request id. The JSON format is one object a line with
// "time", "level" and "message". Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <spdlog/logger.h>

namespace vitrove {

enum class LogFormat { text, json };

// Throws Error{invalid_argument} on an unknown level or format; the messages list the known ones.
spdlog::level::level_enum parse_log_level(std::string_view text);
LogFormat parse_log_format(std::string_view text);

// A formatter for any spdlog sink.
std::unique_ptr<spdlog::formatter> make_log_formatter(LogFormat format);

// Sends the logger "vitrove" to standard error, which nobody need be reading (base/patient_sink.h).
// For programs; a library user who does not call it gets spdlog's default logger, or whatever he
// registered under the name "vitrove".
void set_up_logging(spdlog::level::level_enum level, LogFormat format);

std::shared_ptr<spdlog::logger> logger();

// For places that nothing may leave: an error line, or none when not even that can be written.
void try_log_error(std::string_view what, std::string_view why) noexcept;

// Says a thing at most once per interval. A member of whatever has something to say, so that two
// stores do not silence each other.
class LogThrottle {
 public:
  using Clock = std::chrono::steady_clock;

  explicit LogThrottle(Clock::duration interval) : interval_(interval) {}

  // When it is time to speak: how many calls were silent since the last time. Else nothing.
  std::optional<std::uint64_t> allow(Clock::time_point now = Clock::now());

  // Logs `message`, with the number of silent calls where there were any. Arguments are formatted
  // only when it is time to speak.
  template <typename... Args>
  void log(spdlog::level::level_enum level, spdlog::format_string_t<Args...> format,
           Args&&... args) {
    if (const auto silent = allow()) {
      say(level, fmt::format(format, std::forward<Args>(args)...), *silent);
    }
  }

 private:
  static void say(spdlog::level::level_enum level, std::string_view message, std::uint64_t silent);

  const Clock::duration interval_;
  std::atomic<Clock::rep> next_{Clock::time_point::min().time_since_epoch().count()};
  std::atomic<std::uint64_t> silent_{0};
};

}  // namespace vitrove
