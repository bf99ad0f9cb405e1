// The gets of a batch as commands, and what their answers mean.
//
// A value is one GET; a large one is asked for in parts. A reply is written twice, into the
// server's memory and from there into the socket: parts stay in its core's cache in between (a
// reply of 1 MiB does not, of some megabytes it is fresh memory each time), and travel while the
// next one is made. The value's size is asked for first. What comes of a value that is replaced in
// between is a mixture that no checksum fits: a value that is rejected. Where parts are refused
// (parts_refusal.h) a second plan asks for these values as for any other.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stores/redis/command.h"

namespace vitrove::redis {

// 768 KiB of rows with their header and side data: there whole values are faster, at 1 MiB parts
// (docs/performance.md, "Redis").
inline constexpr std::uint64_t largest_whole_value = std::uint64_t{832} << 10;

class GetPlan {
 public:
  enum class Large : std::uint8_t { in_parts, whole };
  explicit GetPlan(Large large) : large_(large) {}

  // `buffers` outlive the plan and are not empty.
  void add(std::size_t key_index, const std::string& name, MutableBufferList buffers);

  std::span<Command> commands() { return commands_; }
  // A value that is worth parts: few of them are to come at a time.
  bool has_large() const { return has_large_; }
  // After they ran.
  void settle(std::span<StoreResult> results) const;

  // Also after they ran: whether parts came, be it of a value that is gone, and why the server
  // refused some, which the second plan then asks for.
  bool has_read_parts() const;
  Fault why_parts_are_refused() const;
  GetPlan refused_as_whole() const;
  // The server refuses any get.
  bool is_refused() const;

 private:
  struct Get {
    std::size_t key_index = 0;
    std::size_t first = 0;  // of its commands
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    // Of one in parts.
    std::string name;
    MutableBufferList buffers;

    bool is_in_parts() const { return count > 1; }
  };

  void add_parts(std::size_t key_index, const std::string& name, MutableBufferList buffers);
  StoreResult result_of_parts(const Get& get) const;
  std::span<const Command> commands_of(const Get& get) const {
    return std::span(commands_).subspan(get.first, get.count);
  }

  const Large large_;
  std::vector<Command> commands_;
  std::vector<Get> gets_;
  bool has_large_ = false;
  std::vector<std::vector<MutableBuffer>> targets_;  // of parts
};

StoreResult exist_result(const Command& command);  // of a STRLEN

}  // namespace vitrove::redis
