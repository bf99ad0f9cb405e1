#include "stores/redis/stream.h"

#include <algorithm>
#include <cerrno>

#include <limits.h>
#include <sys/socket.h>

namespace vitrove::redis {
namespace {

class PlainStream final : public Stream {
 public:
  explicit PlainStream(UniqueFd socket) : socket_(std::move(socket)) {}

  IoResult read(std::span<const iovec> pieces) override {
    msghdr message = message_of(pieces);
    const ssize_t moved = ::recvmsg(fd(), &message, MSG_DONTWAIT);
    if (moved > 0) return {IoResult::Kind::moved, static_cast<std::size_t>(moved)};
    if (moved == 0) return {IoResult::Kind::ended};
    return io_failure(errno, IoResult::Kind::wants_read);
  }

  IoResult write(std::span<const iovec> pieces) override {
    const msghdr message = message_of(pieces);
    const ssize_t moved = ::sendmsg(fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (moved >= 0) return {IoResult::Kind::moved, static_cast<std::size_t>(moved)};
    return io_failure(errno, IoResult::Kind::wants_write);
  }

  int fd() const override { return socket_.get(); }
  bool ends_with_short_read() const override { return true; }

 private:
  static msghdr message_of(std::span<const iovec> pieces) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces.data());  // not written to
    message.msg_iovlen = std::min<std::size_t>(pieces.size(), IOV_MAX);
    return message;
  }

  const UniqueFd socket_;
};

}  // namespace

IoResult io_failure(int error_number, IoResult::Kind when_blocked) {
  if (error_number == EAGAIN || error_number == EINTR) return {when_blocked};
  return {IoResult::Kind::failed, 0, error_number};
}

std::unique_ptr<Stream> make_plain_stream(UniqueFd socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}

}  // namespace vitrove::redis
