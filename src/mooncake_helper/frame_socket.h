// The helper's end of the socket: whole frames, with the descriptor that may come along.
#pragma once

#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/unique_fd.h"
#include "stores/mooncake/wire.h"

namespace vitrove::mooncake {

// Vitrove said something that the protocol does not allow: nothing after it can be trusted.
struct Nonsense : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class FrameSocket {
 public:
  explicit FrameSocket(int fd) : fd_(fd) {}

  struct Frame {
    wire::Header header;
    wire::Payload payload;
    UniqueFd descriptor;
  };
  // Nothing when Vitrove has closed its end. One thread at a time. Throws Nonsense.
  std::optional<Frame> read();

  // Thread-safe.
  void write(wire::Type type, std::uint64_t call, const wire::Payload& payload);

 private:
  bool read_rest(std::span<std::byte> bytes) const;

  UniqueFd fd_;
  std::mutex writing_;
};

}  // namespace vitrove::mooncake
