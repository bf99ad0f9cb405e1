#include "base/patient_sink.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include <limits.h>
#include <poll.h>
#include <unistd.h>

namespace vitrove {

bool PatientSink::has_room() const {
  pollfd ready{fd_, POLLOUT, 0};
  // Whoever has waited for one line does not wait for the next ones, too.
  const int wait = dropped_ == 0 ? static_cast<int>(patience_.count()) : 0;
  int found = 0;
  do {
    found = ::poll(&ready, 1, wait);
  } while (found < 0 && errno == EINTR);
  return found > 0;
}

// In pieces that a pipe with any room takes whole, so that none blocks. Gives what is left for want
// of room; whatever else is wrong cannot be told anywhere.
std::size_t PatientSink::write(std::string_view text) {
  while (!text.empty() && has_room()) {
    const auto sent = ::write(fd_, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return 0;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return text.size();
}

void PatientSink::tell_dropped(const spdlog::details::log_msg& now) {
  const std::string text = std::to_string(dropped_) + " log lines could not be written";
  spdlog::memory_buf_t line;
  if (is_cut_) line.push_back('\n');
  formatter_->format({now.time, {}, now.logger_name, spdlog::level::warn, text}, line);
  if (write({line.data(), line.size()}) > 0) return;
  dropped_ = 0;
  is_cut_ = false;
}

void PatientSink::sink_it_(const spdlog::details::log_msg& message) {
  if (dropped_ > 0 && has_room()) tell_dropped(message);
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  const std::size_t left =
      dropped_ > 0 && is_cut_ ? line.size() : write({line.data(), line.size()});
  if (left == 0) return;
  ++dropped_;
  if (left < line.size()) is_cut_ = true;
}

}  // namespace vitrove
