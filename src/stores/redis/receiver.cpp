#include "stores/redis/receiver.h"

#include <cstring>

#include "stores/batch.h"

namespace vitrove::redis {
namespace {

// A large value is read into its own buffers from (almost) the first byte on: the lines before it,
// and before each of its parts, are some twenty bytes.
constexpr std::size_t large_value = ReadBuffer::capacity;
constexpr std::size_t room_before_large_value = 128;
constexpr std::size_t max_read_bytes = 4 << 20;

}  // namespace

Receiver::Understood Receiver::understand(ReadBuffer& buffer) {
  while (true) {
    switch (phase_) {
      case Phase::head: {
        const Understood understood = understand_head(buffer);
        if (phase_ == Phase::head) return understood;
        break;
      }
      case Phase::value:
        take_value(buffer);
        if (phase_ == Phase::value) return Understood::needs_more;
        break;
      case Phase::dropped_value:
        drop_value(buffer);
        if (phase_ == Phase::dropped_value) return Understood::needs_more;
        break;
      case Phase::line_end:
        return take_line_end(buffer);
    }
  }
}

Receiver::Understood Receiver::understand_head(ReadBuffer& buffer) {
  const bool is_asking_reply = current().asking && !skipped_asking_;
  if (is_building_ || is_asking_reply || current().target_bytes == 0) return take_reply(buffer);
  ReplyHead head;
  switch (parse_head(buffer.bytes(), head)) {
    case Parsed::incomplete:
      return Understood::needs_more;
    case Parsed::malformed:
      return Understood::malformed;
    case Parsed::complete:
      break;
  }
  if (head.type != ReplyType::bulk) return take_reply(buffer);
  buffer.consume(head.bytes);
  begin_value(static_cast<std::uint64_t>(head.number));
  return Understood::needs_more;
}

void Receiver::begin_value(std::uint64_t bytes) {
  Command& command = current();
  command.reply = Reply{};
  command.reply.type = ReplyType::bulk;
  command.reply.number = static_cast<std::int64_t>(bytes);
  left_ = bytes;
  const bool fits = bytes == command.target_bytes;
  if (fits) value_ = BufferCursor<MutableBuffer>(command.target);
  phase_ = fits ? Phase::value : Phase::dropped_value;
}

Receiver::Understood Receiver::take_reply(ReadBuffer& buffer) {
  std::string_view bytes = buffer.bytes();
  const std::size_t before = bytes.size();
  const Parsed parsed = builder_.feed(bytes);
  buffer.consume(before - bytes.size());
  if (parsed == Parsed::malformed) return Understood::malformed;
  is_building_ = parsed == Parsed::incomplete;
  if (is_building_) return Understood::needs_more;
  Reply reply = builder_.take();
  if (current().asking && !skipped_asking_) {
    skipped_asking_ = true;
    return understand_head(buffer);
  }
  current().reply = std::move(reply);
  finish_command();
  return Understood::answered;
}

void Receiver::take_value(ReadBuffer& buffer) {
  std::string_view bytes = buffer.bytes().substr(0, left_);
  buffer.consume(bytes.size());
  while (!bytes.empty()) {
    iovec piece;
    value_.collect({&piece, 1}, bytes.size());
    std::memcpy(piece.iov_base, bytes.data(), piece.iov_len);
    bytes.remove_prefix(piece.iov_len);
    pass_value(piece.iov_len);
  }
  if (left_ > 0) return;
  phase_ = Phase::line_end;
  left_ = end_of_line.size();
}

void Receiver::pass_value(std::size_t bytes) {
  left_ -= bytes;
  PieceObserver* const observer = context_.observer;
  const Command& command = current();
  value_.advance(bytes, [&](std::uint64_t offset, MutableBuffer piece) {
    if (observer == nullptr) return;
    observer->on_piece(command.key_index, command.target_offset + offset, piece);
  });
}

void Receiver::drop_value(ReadBuffer& buffer) {
  const std::size_t count = std::min<std::uint64_t>(buffer.bytes().size(), left_);
  buffer.consume(count);
  left_ -= count;
  if (left_ > 0) return;
  phase_ = Phase::line_end;
  left_ = end_of_line.size();
}

Receiver::Understood Receiver::take_line_end(ReadBuffer& buffer) {
  while (left_ > 0) {
    if (buffer.empty()) return Understood::needs_more;
    if (buffer.bytes().front() != end_of_line[end_of_line.size() - left_])
      return Understood::malformed;
    buffer.consume(1);
    --left_;
  }
  finish_command();
  return Understood::answered;
}

void Receiver::finish_command() {
  current().answered = true;
  ++answered_;
  phase_ = Phase::head;
  skipped_asking_ = false;
}

// How much may be read into the buffer before the answer of this command. A line (a size) comes
// with what follows it.
std::size_t Receiver::buffer_limit(std::size_t command) const {
  const auto is_below = [this](std::size_t number) { return number < commands_.size(); };
  if (is_below(command + 1) && commands_[command]->target_bytes == 0) ++command;
  const bool is_large = is_below(command) && commands_[command]->target_bytes >= large_value;
  return is_large ? room_before_large_value : ReadBuffer::capacity;
}

std::size_t Receiver::targets(ReadBuffer& buffer, std::span<iovec> pieces) {
  std::size_t count = 0;
  std::size_t limit = buffer_limit(answered_);
  if (phase_ == Phase::value) {
    const std::size_t most = context_.observer != nullptr ? observed_piece_bytes : max_read_bytes;
    count = value_.collect(pieces.first(pieces.size() - 1), most);
    std::size_t covered = 0;
    for (const iovec& piece : pieces.first(count)) covered += piece.iov_len;
    if (covered < left_) return count;
    limit = buffer_limit(answered_ + 1);
  } else if (phase_ == Phase::dropped_value) {
    limit = ReadBuffer::capacity;
  }
  pieces[count] = buffer.room(limit);
  return count + 1;
}

void Receiver::received(std::size_t bytes, ReadBuffer& buffer) {
  if (phase_ == Phase::value) {
    const std::size_t of_value = std::min<std::uint64_t>(bytes, left_);
    pass_value(of_value);
    bytes -= of_value;
  }
  buffer.added(bytes);
}

}  // namespace vitrove::redis
