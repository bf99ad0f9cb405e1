#include "stores/file/transfer.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/uio.h>

#include "stores/batch.h"

namespace vitrove::file {
namespace {

// Bounds of one system call: its vector fits a stack frame, and a cancelled call ends soon.
constexpr std::size_t max_buffers = 256;
constexpr std::size_t max_bytes = 8 << 20;

// A place in a buffer list.
template <typename Buffer>
class Cursor {
 public:
  explicit Cursor(std::span<const Buffer> list) : rest_(list) { skip_empty(); }

  bool at_end() const { return rest_.empty(); }
  std::uint64_t offset() const { return offset_; }  // in the value

  // The next buffers, up to `limit` bytes; returns how many entries of `vector` were filled.
  int collect(std::array<iovec, max_buffers>& vector, std::size_t limit) const {
    std::size_t count = 0;
    std::size_t skip = used_;
    for (const Buffer& buffer : rest_) {
      if (count == vector.size() || limit == 0) break;
      const std::size_t size = std::min(buffer.size() - skip, limit);
      if (size > 0) {
        // The kernel's struct serves both directions; pwritev only reads.
        vector[count++] = {const_cast<std::byte*>(buffer.data()) + skip, size};
      }
      limit -= size;
      skip = 0;
    }
    return static_cast<int>(count);
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

int reason_to_stop(const StoreContext& context) {
  const auto reason = stop_reason(context);
  if (!reason) return 0;
  return *reason == StoreStatus::timeout ? ETIMEDOUT : ECANCELED;
}

// Calls move(vector, count, offset) until the whole list is done.
template <typename Buffer, typename Move, typename Passed>
int move_all(std::span<const Buffer> buffers, std::size_t limit, const StoreContext& context,
             Move move, Passed passed) {
  std::array<iovec, max_buffers> vector;
  Cursor<Buffer> cursor(buffers);
  while (!cursor.at_end()) {
    if (const int reason = reason_to_stop(context)) return reason;
    const int count = cursor.collect(vector, limit);
    const ssize_t moved = move(vector.data(), count, static_cast<off_t>(cursor.offset()));
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return errno;
    if (moved == 0) return ENODATA;
    cursor.advance(static_cast<std::size_t>(moved), passed);
  }
  return 0;
}

}  // namespace

int read_value(int fd, MutableBufferList buffers, std::size_t key_index,
               const StoreContext& context) {
  const auto move = [fd](const iovec* vector, int count, off_t offset) {
    return ::preadv(fd, vector, count, offset);
  };
  PieceObserver* const observer = context.observer;
  if (observer == nullptr) {
    return move_all(buffers, max_bytes, context, move, [](std::uint64_t, MutableBuffer) {});
  }
  return move_all(buffers, observed_piece_bytes, context, move,
                  [&](std::uint64_t offset, MutableBuffer piece) {
                    observer->on_piece(key_index, offset, piece);
                  });
}

int write_value(int fd, ConstBufferList buffers, const StoreContext& context) {
  const auto move = [fd](const iovec* vector, int count, off_t offset) {
    return ::pwritev(fd, vector, count, offset);
  };
  const int error = move_all(buffers, max_bytes, context, move, [](std::uint64_t, ConstBuffer) {});
  return error == ENODATA ? EIO : error;  // a write of nothing is no answer
}

}  // namespace vitrove::file
