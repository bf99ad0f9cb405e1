#include "stores/file/transfer.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/uio.h>

#include "stores/batch.h"
#include "stores/buffer_cursor.h"

namespace vitrove::file {
namespace {

// Bounds of one system call: its vector fits a stack frame, and a cancelled call ends soon.
constexpr std::size_t max_buffers = 256;
constexpr std::size_t max_bytes = 8 << 20;

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
  BufferCursor<Buffer> cursor(buffers);
  while (!cursor.at_end()) {
    if (const int reason = reason_to_stop(context)) return reason;
    const auto count = static_cast<int>(cursor.collect(vector, limit));
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
