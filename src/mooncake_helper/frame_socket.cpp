#include "mooncake_helper/frame_socket.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <sys/uio.h>

namespace vitrove::mooncake {
namespace {

UniqueFd descriptor_in(msghdr& message) {
  UniqueFd fd;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    int number = -1;
    std::memcpy(&number, CMSG_DATA(part), sizeof number);
    fd.reset(number);
  }
  return fd;
}

}  // namespace

bool FrameSocket::read_rest(std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

std::optional<FrameSocket::Frame> FrameSocket::read() {
  std::array<std::byte, wire::header_bytes> bytes{};
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = -1;
  do {
    got = ::recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return std::nullopt;
  Frame frame;
  frame.descriptor = descriptor_in(message);
  if (!read_rest(std::span(bytes).subspan(static_cast<std::size_t>(got)))) return std::nullopt;
  const auto header = wire::decode_header(bytes);
  if (!header) throw Nonsense("a header of somebody else");
  frame.header = *header;
  frame.payload.resize(header->payload_bytes);
  if (!read_rest(frame.payload)) return std::nullopt;
  return frame;
}

void FrameSocket::write(wire::Type type, std::uint64_t call, const wire::Payload& payload) {
  const auto header = wire::encode({type, call, static_cast<std::uint32_t>(payload.size())});
  wire::Payload frame(header.begin(), header.end());
  frame.insert(frame.end(), payload.begin(), payload.end());
  std::lock_guard lock(writing_);
  std::span<const std::byte> rest = frame;
  while (!rest.empty()) {
    const ssize_t sent = ::send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;  // Vitrove is gone; the reader sees it too
    rest = rest.subspan(static_cast<std::size_t>(sent));
  }
}

}  // namespace vitrove::mooncake
