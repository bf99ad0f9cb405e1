// A connection to one server: its stream, and what was read from it and not yet understood.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "stores/redis/stream.h"

namespace vitrove::redis {

class ReadBuffer {
 public:
  static constexpr std::size_t capacity = 16 * 1024;  // holds any line, see max_line_bytes

  std::string_view bytes() const { return {bytes_.data() + begin_, end_ - begin_}; }
  bool empty() const { return begin_ == end_; }
  void consume(std::size_t count) { begin_ += count; }

  // Room for up to `limit` more bytes; what was read into it becomes part of bytes() by added().
  iovec room(std::size_t limit) {
    if (begin_ > 0) {
      std::memmove(bytes_.data(), bytes_.data() + begin_, end_ - begin_);
      end_ -= std::exchange(begin_, 0);
    }
    return {bytes_.data() + end_, std::min(limit, capacity - end_)};
  }
  void added(std::size_t count) { end_ += count; }

 private:
  std::array<char, capacity> bytes_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

class Connection {
 public:
  explicit Connection(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}

  Stream& stream() { return *stream_; }
  ReadBuffer& buffer() { return buffer_; }

  // Nobody has closed it, and nothing has come that nobody asked for.
  bool is_quiet() {
    if (!buffer_.empty()) return false;
    const iovec room = buffer_.room(1);
    return stream_->read({&room, 1}).kind == IoResult::Kind::wants_read;
  }

  // It waited for use: the server may have closed it, and nobody has heard of that yet.
  bool has_waited() const { return has_waited_; }
  void set_waiting() { has_waited_ = true; }

 private:
  std::unique_ptr<Stream> stream_;
  ReadBuffer buffer_;
  bool has_waited_ = false;
};

}  // namespace vitrove::redis
