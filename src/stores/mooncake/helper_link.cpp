#include "stores/mooncake/helper_link.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/environment.h"
#include "vitrove/error.h"

namespace vitrove::mooncake {
namespace {

constexpr std::size_t read_bytes = 64 * 1024;

// A descriptor rides on the first byte of its frame.
ssize_t send_some(int socket, std::span<const std::byte> bytes, int fd) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

HelperLink::HelperLink() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) {
    throw Error(ErrorCode::unavailable, "mooncake store: no descriptor for its helper",
                errno_text(errno));
  }
}

void HelperLink::open(int socket) {
  std::lock_guard lock(mutex_);
  socket_ = socket;
  waiting_.clear();
  received_.clear();
  filled_ = 0;
}

void HelperLink::close() {
  std::lock_guard lock(mutex_);
  socket_ = -1;
  waiting_.clear();
}

void HelperLink::send(wire::Type type, std::uint64_t call, const wire::Payload& payload, int fd) {
  const auto header = wire::encode({type, call, static_cast<std::uint32_t>(payload.size())});
  Waiting frame;
  frame.bytes.reserve(header.size() + payload.size());
  frame.bytes.assign(header.begin(), header.end());
  frame.bytes.insert(frame.bytes.end(), payload.begin(), payload.end());
  frame.fd = fd;
  {
    std::lock_guard lock(mutex_);
    if (socket_ < 0) return;
    waiting_.reserve(waiting_.size() + 1);  // fails, if at all, before anything is sent
    if (waiting_.empty() && write(frame)) return;
    waiting_.push_back(std::move(frame));
  }
  wake();
}

void HelperLink::wake() {
  const std::uint64_t one = 1;
  // A full counter wakes as well.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

bool HelperLink::write(Waiting& frame) const {
  while (frame.sent < frame.bytes.size()) {
    const ssize_t sent = send_some(socket_, std::span(frame.bytes).subspan(frame.sent), frame.fd);
    if (sent < 0 && errno == EINTR) continue;
    // Whatever else is wrong with the socket shows when it is read.
    if (sent < 0) return errno != EAGAIN && errno != EWOULDBLOCK;
    frame.fd = -1;
    frame.sent += static_cast<std::size_t>(sent);
  }
  return true;
}

void HelperLink::write_waiting() {
  std::lock_guard lock(mutex_);
  std::size_t done = 0;
  while (done < waiting_.size() && write(waiting_[done])) ++done;
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(done));
}

HelperLink::Events HelperLink::poll(int words, int timeout_ms) {
  std::array<pollfd, 3> wanted{};
  {
    std::lock_guard lock(mutex_);
    const bool full = !waiting_.empty();
    wanted[0] = {socket_, static_cast<short>(POLLIN | (full ? POLLOUT : 0)), 0};
  }
  wanted[1] = {words, POLLIN, 0};
  wanted[2] = {wake_.get(), POLLIN, 0};
  if (::poll(wanted.data(), wanted.size(), timeout_ms) <= 0) return {};
  if (wanted[2].revents != 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t read = ::read(wake_.get(), &count, sizeof count);
  }
  if ((wanted[0].revents & POLLOUT) != 0) write_waiting();
  constexpr int heard = POLLIN | POLLHUP | POLLERR;
  return {(wanted[0].revents & heard) != 0, (wanted[1].revents & heard) != 0};
}

HelperLink::Read HelperLink::read(Frame& frame) {
  const auto missing = [this](std::size_t wanted) { return filled_ < wanted; };
  for (;;) {
    if (!missing(wire::header_bytes)) {
      const auto header = wire::decode_header(std::span(received_).first<wire::header_bytes>());
      if (!header) return Read::nonsense;
      const std::size_t whole = wire::header_bytes + header->payload_bytes;
      if (!missing(whole)) {
        frame.header = *header;
        const auto begin = received_.begin();
        frame.payload.assign(begin + wire::header_bytes,
                             begin + static_cast<std::ptrdiff_t>(whole));
        received_.erase(begin, begin + static_cast<std::ptrdiff_t>(whole));
        filled_ -= whole;
        return Read::frame;
      }
    }
    if (received_.size() < filled_ + read_bytes) received_.resize(filled_ + read_bytes);
    const ssize_t got = ::recv(socket_, received_.data() + filled_, read_bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Read::nothing;
    if (got <= 0) return Read::closed;
    filled_ += static_cast<std::size_t>(got);
  }
}

}  // namespace vitrove::mooncake
