// PatientSink: log lines to a descriptor that nobody may be reading. A program must not stop for
// the sake of its log: once a line has waited in vain for a little while, lines are dropped until
// there is room again, and then their number is told.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

#include <spdlog/sinks/base_sink.h>

namespace vitrove {

class PatientSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // The descriptor stays the caller's. Pipes, sockets and terminals are asked before each piece is
  // written; files always have room.
  PatientSink(int fd, std::chrono::milliseconds patience) : fd_(fd), patience_(patience) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

  std::size_t write(std::string_view text);
  void tell_dropped(const spdlog::details::log_msg& now);
  bool has_room() const;

  const int fd_;
  const std::chrono::milliseconds patience_;
  std::uint64_t dropped_ = 0;
  bool is_cut_ = false;  // the last line that was written ended before its end
};

}  // namespace vitrove
