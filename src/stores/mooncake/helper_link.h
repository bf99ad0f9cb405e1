// HelperLink: our end of the socket to the helper of now.
//
// Frames are written by whoever has one; what does not fit at once is kept and written by the
// supervisor, so that a helper that does not read holds nobody up. Between two helpers it is
// closed, and frames go nowhere. send() is thread-safe, the rest is the supervisor's.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/unique_fd.h"
#include "stores/mooncake/wire.h"

namespace vitrove::mooncake {

class HelperLink {
 public:
  // Throws Error{unavailable} when there is no descriptor for the wake-up call.
  HelperLink();

  // The socket stays the caller's, who closes the link first.
  void open(int socket);
  void close();

  // Nothing is sent when the link is closed. `fd` goes along when it is not -1; it must stay open
  // until the helper has answered.
  void send(wire::Type type, std::uint64_t call, const wire::Payload& payload, int fd = -1);
  void wake();

  // Waits until the helper says something on the socket or through `words`, there is room to write,
  // somebody wakes it, or time is up.
  struct Events {
    bool socket = false;
    bool words = false;
  };
  Events poll(int words, int timeout_ms);

  struct Frame {
    wire::Header header;
    wire::Payload payload;
  };
  enum class Read : std::uint8_t { frame, nothing, closed, nonsense };
  Read read(Frame& frame);

 private:
  struct Waiting {
    std::vector<std::byte> bytes;
    std::size_t sent = 0;
    int fd = -1;
  };
  // False when the socket takes no more now.
  bool write(Waiting& frame) const;
  void write_waiting();

  UniqueFd wake_;
  std::mutex mutex_;
  int socket_ = -1;
  std::vector<Waiting> waiting_;
  std::vector<std::byte> received_;  // of the supervisor
  std::size_t filled_ = 0;
};

}  // namespace vitrove::mooncake
