// A place in a value that is scattered over buffers, for system calls that take vectors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/uio.h>

namespace vitrove {

template <typename Buffer>
class BufferCursor {
 public:
  BufferCursor() = default;
  explicit BufferCursor(std::span<const Buffer> list) : rest_(list) { skip_empty(); }

  bool at_end() const { return rest_.empty(); }
  std::uint64_t offset() const { return offset_; }  // in the value

  // The next buffers, up to `limit` bytes; returns how many entries of `vector` were filled.
  std::size_t collect(std::span<iovec> vector, std::size_t limit) const {
    std::size_t count = 0;
    std::size_t skip = used_;
    for (const Buffer& buffer : rest_) {
      if (count == vector.size() || limit == 0) break;
      const std::size_t size = std::min(buffer.size() - skip, limit);
      if (size > 0) {
        // The kernel's struct serves both directions; what writes a file or a socket only reads.
        vector[count++] = {const_cast<std::byte*>(buffer.data()) + skip, size};
      }
      limit -= size;
      skip = 0;
    }
    return count;
  }

  // Moves on by `bytes`; each stretch of one buffer that was passed goes to passed(offset, span).
  template <typename Passed>
  void advance(std::size_t bytes, Passed passed) {
    while (bytes > 0) {
      const Buffer piece =
          rest_.front().subspan(used_, std::min(bytes, rest_.front().size() - used_));
      passed(offset_, piece);
      bytes -= piece.size();
      used_ += piece.size();
      offset_ += piece.size();
      skip_empty();
    }
  }

 private:
  void skip_empty() {
    while (!rest_.empty() && used_ == rest_.front().size()) {
      rest_ = rest_.subspan(1);
      used_ = 0;
    }
  }

  std::span<const Buffer> rest_;
  std::size_t used_ = 0;  // of the first buffer of rest_
  std::uint64_t offset_ = 0;
};

}  // namespace vitrove
