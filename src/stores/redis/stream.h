// A connected byte stream, plain or TLS, that never blocks.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <sys/uio.h>

#include "base/unique_fd.h"

namespace vitrove::redis {

struct IoResult {
  enum class Kind { moved, wants_read, wants_write, ended, failed };
  Kind kind = Kind::moved;
  std::size_t bytes = 0;
  int error_number = 0;

  bool moved() const { return kind == Kind::moved; }
  bool blocked() const { return kind == Kind::wants_read || kind == Kind::wants_write; }
};

class Stream {
 public:
  virtual ~Stream() = default;

  // Some bytes into or out of the front of `pieces`, none of which is empty. What a write that
  // blocked was given has to stand at the front of the next one again.
  virtual IoResult read(std::span<const iovec> pieces) = 0;
  virtual IoResult write(std::span<const iovec> pieces) = 0;
  virtual int fd() const = 0;
  // Whether a read that gave less than it had room for has emptied the stream.
  virtual bool ends_with_short_read() const = 0;
};

// `socket` is connected and non-blocking.
std::unique_ptr<Stream> make_plain_stream(UniqueFd socket);

// The error of an IoResult for a system call that failed with `error_number`.
IoResult io_failure(int error_number, IoResult::Kind when_blocked);

}  // namespace vitrove::redis
