// Writes the commands of a batch to a stream, gathered: many commands and buffers a system call.
#pragma once

#include <span>
#include <vector>

#include "stores/redis/command.h"
#include "stores/redis/stream.h"

namespace vitrove::redis {

class Sender {
 public:
  // At most `window` bytes of values are owed to us at a time, or two values. Answers that bring
  // none (the size before the parts of a value) do not count: else one of the two might be nothing.
  Sender(std::span<Command* const> commands, std::uint64_t window)
      : commands_(commands), window_(window) {}

  // One write of what may be sent now. Call while has_work().
  IoResult send(Stream& stream);
  bool has_work();
  // An answer has come, so that more may be asked for.
  void note_answered(const Command& command);

  // Commands of which the server may have seen something.
  std::size_t begun() const { return part_ > 0 || offset_ > 0 ? sent_ + 1 : sent_; }

 private:
  void admit();
  std::size_t collect(std::span<iovec> pieces) const;
  void advance(std::size_t bytes);

  const std::span<Command* const> commands_;
  const std::uint64_t window_;
  // Commands before `admitted_` may be sent. `sent_` are sent; of the next one, `offset_` bytes of
  // its part `part_`, and all parts before.
  std::size_t admitted_ = 0;
  std::size_t sent_ = 0;
  std::size_t part_ = 0;
  std::size_t offset_ = 0;
  // What the server owes us.
  std::size_t owed_answers_ = 0;
  std::size_t owed_values_ = 0;
  std::uint64_t owed_bytes_ = 0;
};

}  // namespace vitrove::redis
