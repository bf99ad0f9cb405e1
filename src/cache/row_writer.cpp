#include "cache/row_writer.h"

#include <algorithm>
#include <cstring>

namespace vitrove {
namespace {

constexpr std::size_t written_at_once = 128 * 1024;

// Hands out room, buffer after buffer.
class Room {
 public:
  explicit Room(std::span<const MutableBuffer> buffers) : buffers_(buffers) {}

  // At most `wanted` bytes, in one piece, never none.
  MutableBuffer next(std::size_t wanted) {
    while (used_ == buffers_.front().size()) {
      buffers_ = buffers_.subspan(1);
      used_ = 0;
    }
    const auto room = buffers_.front().subspan(used_);
    const auto part = room.first(std::min(wanted, room.size()));
    used_ += part.size();
    return part;
  }

 private:
  std::span<const MutableBuffer> buffers_;
  std::size_t used_ = 0;
};

}  // namespace

WrittenRows write_rows(std::span<const std::byte> rows, std::span<const std::byte> side,
                       DType dtype, std::span<const MutableBuffer> destination) {
  Room room(destination);
  PayloadChecksum checksum;
  WrittenRows written;
  const auto copy = [&](std::span<const std::byte> part) {
    while (!part.empty()) {
      const MutableBuffer to = room.next(part.size());
      std::memcpy(to.data(), part.data(), to.size());
      checksum.update(to);
      part = part.subspan(to.size());
    }
  };
  // Pieces are whole elements: rows are, and nothing else divides them but written_at_once.
  while (!rows.empty()) {
    const auto piece = rows.first(std::min(rows.size(), written_at_once));
    written.finite = written.finite && all_finite(piece, dtype);
    copy(piece);
    rows = rows.subspan(piece.size());
  }
  checksum.update(side);
  written.checksum = checksum.finish();
  return written;
}

}  // namespace vitrove
