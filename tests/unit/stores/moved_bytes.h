// Counts the bytes that go straight between some memory and a socket, a file or OpenSSL, without a
// copy of ours: this test program defines the functions that move them (moved_bytes.cpp,
// syscall_faults.cpp).
#pragma once

#include <cstdint>
#include <span>

#include <sys/types.h>
#include <sys/uio.h>

namespace vitrove::testing {

// One at a time.
class MovedBytes {
 public:
  explicit MovedBytes(std::span<const std::byte> memory);
  ~MovedBytes();
  MovedBytes(const MovedBytes&) = delete;
  MovedBytes& operator=(const MovedBytes&) = delete;

  std::uint64_t count() const;
};

// Of the functions: they have moved `moved` bytes (below 0: none). Hand `moved` on.
ssize_t note_moved(std::span<const iovec> pieces, ssize_t moved);

}  // namespace vitrove::testing
