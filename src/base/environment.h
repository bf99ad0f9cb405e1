// What the process was started with, and the system's words for its errors, asked for in one place.
#pragma once

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

namespace vitrove {

// An environment variable, unless it is unset. Nothing sets one once there are threads, so readers
// cannot race; a host that calls setenv() beside us has that race with every library.
inline std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): see above
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

// strerror() shares a buffer between threads; this does not.
inline std::string errno_text(int number) {
  const char* text = strerrordesc_np(number);
  return text == nullptr ? "error " + std::to_string(number) : std::string(text);
}

}  // namespace vitrove
