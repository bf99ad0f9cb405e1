#include "unit/stores/moved_bytes.h"

#include <algorithm>
#include <functional>
#include <mutex>

#include <openssl/ssl.h>
#include <sys/socket.h>

namespace vitrove::testing {
namespace {

struct Watched {
  std::mutex mutex;
  std::span<const std::byte> memory;
  std::uint64_t bytes = 0;
};

// A function's own static: calls may come before and after main().
Watched& watched() {
  static Watched* const watched = new Watched;
  return *watched;
}

bool is_inside(std::span<const std::byte> memory, const void* place) {
  const auto* const byte = static_cast<const std::byte*>(place);
  return !memory.empty() && !std::less<>()(byte, memory.data()) &&
         std::less<>()(byte, memory.data() + memory.size());
}

int note_one(const void* bytes, int moved) {
  const iovec piece{const_cast<void*>(bytes), static_cast<std::size_t>(std::max(moved, 0))};
  note_moved({&piece, 1}, moved);
  return moved;
}

}  // namespace

MovedBytes::MovedBytes(std::span<const std::byte> memory) {
  std::lock_guard lock(watched().mutex);
  watched().memory = memory;
  watched().bytes = 0;
}

MovedBytes::~MovedBytes() {
  std::lock_guard lock(watched().mutex);
  watched().memory = {};
}

std::uint64_t MovedBytes::count() const {
  std::lock_guard lock(watched().mutex);
  return watched().bytes;
}

ssize_t note_moved(std::span<const iovec> pieces, ssize_t moved) {
  if (moved <= 0) return moved;
  auto left = static_cast<std::size_t>(moved);
  std::lock_guard lock(watched().mutex);
  for (const iovec& piece : pieces) {
    const std::size_t some = std::min(left, piece.iov_len);
    if (is_inside(watched().memory, piece.iov_base)) watched().bytes += some;
    left -= some;
  }
  return moved;
}

}  // namespace vitrove::testing

// The linker sends calls of the library here (--wrap in tests/CMakeLists.txt), and those of
// here to the real functions, or to a sanitizer's.
extern "C" {

ssize_t real_recvmsg(int fd, msghdr* message, int flags) asm("__real_recvmsg");
ssize_t real_sendmsg(int fd, const msghdr* message, int flags) asm("__real_sendmsg");
int real_ssl_read(SSL* ssl, void* bytes, int count) asm("__real_SSL_read");
int real_ssl_write(SSL* ssl, const void* bytes, int count) asm("__real_SSL_write");

ssize_t seen_recvmsg(int fd, msghdr* message, int flags) asm("__wrap_recvmsg");
ssize_t seen_sendmsg(int fd, const msghdr* message, int flags) asm("__wrap_sendmsg");
int seen_ssl_read(SSL* ssl, void* bytes, int count) asm("__wrap_SSL_read");
int seen_ssl_write(SSL* ssl, const void* bytes, int count) asm("__wrap_SSL_write");

ssize_t seen_recvmsg(int fd, msghdr* message, int flags) {
  const ssize_t moved = real_recvmsg(fd, message, flags);
  return vitrove::testing::note_moved({message->msg_iov, message->msg_iovlen}, moved);
}
ssize_t seen_sendmsg(int fd, const msghdr* message, int flags) {
  const ssize_t moved = real_sendmsg(fd, message, flags);
  return vitrove::testing::note_moved({message->msg_iov, message->msg_iovlen}, moved);
}
int seen_ssl_read(SSL* ssl, void* bytes, int count) {
  return vitrove::testing::note_one(bytes, real_ssl_read(ssl, bytes, count));
}
int seen_ssl_write(SSL* ssl, const void* bytes, int count) {
  return vitrove::testing::note_one(bytes, real_ssl_write(ssl, bytes, count));
}

}  // extern "C"
