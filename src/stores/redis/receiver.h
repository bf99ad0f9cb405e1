// Reads the answers of a batch, in the order of its commands. Values go straight into the buffers
// of their commands; only what came along with a line is copied there.
#pragma once

#include <span>

#include "stores/buffer_cursor.h"
#include "stores/redis/command.h"
#include "stores/redis/connection.h"

namespace vitrove::redis {

class Receiver {
 public:
  Receiver(std::span<Command* const> commands, const StoreContext& context)
      : commands_(commands), context_(context) {}

  bool all_answered() const { return answered_ == commands_.size(); }
  std::size_t answered() const { return answered_; }

  // Understands what the buffer holds of one more answer. `answered`: it is complete.
  enum class Understood { answered, needs_more, malformed };
  Understood understand(ReadBuffer& buffer);

  // Where the next bytes go: the value first, then the buffer. At least one entry.
  std::size_t targets(ReadBuffer& buffer, std::span<iovec> pieces);
  // So many bytes were read into them.
  void received(std::size_t bytes, ReadBuffer& buffer);

 private:
  enum class Phase { head, value, dropped_value, line_end };

  Understood understand_head(ReadBuffer& buffer);
  Understood take_reply(ReadBuffer& buffer);
  void begin_value(std::uint64_t bytes);
  void take_value(ReadBuffer& buffer);
  void drop_value(ReadBuffer& buffer);
  Understood take_line_end(ReadBuffer& buffer);
  void pass_value(std::size_t bytes);
  void finish_command();
  std::size_t buffer_limit(std::size_t command) const;

  Command& current() { return *commands_[answered_]; }

  const std::span<Command* const> commands_;
  const StoreContext& context_;
  std::size_t answered_ = 0;
  Phase phase_ = Phase::head;
  bool skipped_asking_ = false;
  BufferCursor<MutableBuffer> value_;
  std::uint64_t left_ = 0;  // bytes of the value, or of its line end
  ReplyBuilder builder_;
  bool is_building_ = false;  // the builder holds a part of a reply
};

}  // namespace vitrove::redis
