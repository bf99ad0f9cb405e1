#include "stores/redis/sender.h"

#include <algorithm>
#include <array>

namespace vitrove::redis {
namespace {

// The server works on one while the other is on its way.
constexpr std::size_t least_owed_values = 2;
constexpr std::size_t max_owed_answers = 1024;

// Bounds of one system call.
constexpr std::size_t max_pieces_a_write = 512;
constexpr std::size_t max_bytes_a_write = 2 << 20;

constexpr std::string_view asking_command = "*1\r\n$6\r\nASKING\r\n";

bool brings_value(const Command& command) { return command.target_bytes > 0; }

// A command is: ASKING where needed, head, the buffers of the payload, tail.
std::size_t part_count(const Command& command) { return command.payload.size() + 3; }

std::span<const std::byte> part_of(const Command& command, std::size_t part) {
  if (part == 0) {
    return command.asking ? std::as_bytes(std::span(asking_command)) : ConstBuffer{};
  }
  if (part == 1) return std::as_bytes(std::span(command.head));
  if (part - 2 < command.payload.size()) return command.payload[part - 2];
  return std::as_bytes(std::span(command.tail));
}

}  // namespace

void Sender::admit() {
  const bool is_busy = owed_values_ >= least_owed_values;
  if (is_busy && owed_bytes_ > window_ / 2) return;  // fewer and larger writes
  while (admitted_ < commands_.size() && owed_answers_ < max_owed_answers) {
    const std::uint64_t bytes = commands_[admitted_]->target_bytes;
    if (owed_values_ >= least_owed_values && owed_bytes_ + bytes > window_) return;
    owed_bytes_ += bytes;
    owed_values_ += brings_value(*commands_[admitted_]) ? 1 : 0;
    ++owed_answers_;
    ++admitted_;
  }
}

void Sender::note_answered(const Command& command) {
  owed_bytes_ -= command.target_bytes;
  owed_values_ -= brings_value(command) ? 1 : 0;
  --owed_answers_;
}

bool Sender::has_work() {
  admit();
  return sent_ < admitted_;
}

std::size_t Sender::collect(std::span<iovec> pieces) const {
  std::size_t count = 0;
  std::size_t bytes = 0;
  std::size_t part = part_;
  std::size_t offset = offset_;
  for (std::size_t i = sent_; i < admitted_; ++i, part = 0) {
    for (; part < part_count(*commands_[i]); ++part, offset = 0) {
      const ConstBuffer piece = part_of(*commands_[i], part).subspan(offset);
      if (piece.empty()) continue;
      if (count == pieces.size() || bytes >= max_bytes_a_write) return count;
      // sendmsg only reads.
      pieces[count++] = {const_cast<std::byte*>(piece.data()), piece.size()};
      bytes += piece.size();
    }
  }
  return count;
}

void Sender::advance(std::size_t bytes) {
  while (sent_ < admitted_) {
    const Command& command = *commands_[sent_];
    for (; part_ < part_count(command); ++part_, offset_ = 0) {
      const std::size_t left = part_of(command, part_).size() - offset_;
      if (bytes < left) {
        offset_ += bytes;
        return;
      }
      bytes -= left;
    }
    part_ = 0;
    ++sent_;
    if (bytes == 0) return;
  }
}

IoResult Sender::send(Stream& stream) {
  std::array<iovec, max_pieces_a_write> pieces;
  const std::size_t count = collect(pieces);
  const IoResult result = stream.write(std::span(pieces).first(count));
  if (result.moved()) advance(result.bytes);
  return result;
}

}  // namespace vitrove::redis
