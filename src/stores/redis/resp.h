// RESP2, the protocol of Redis and Valkey: bytes of commands and of replies. No I/O.
//
// Commands are arrays of length-framed strings, so that no key and no value can be taken for
// protocol (field case B89). Replies come from a server that nobody vouches for: lines, nesting and
// the total size are bounded, and whatever is not RESP2 is `malformed`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace vitrove::redis {

inline constexpr std::string_view end_of_line = "\r\n";

// Bounds of a reply.
inline constexpr std::size_t max_line_bytes = 4096;
inline constexpr std::size_t max_reply_depth = 8;
inline constexpr std::size_t max_reply_bytes = std::size_t{64} << 20;  // of a whole Reply
inline constexpr std::int64_t max_bulk_bytes = std::int64_t{1} << 40;

enum class ReplyType : std::uint8_t { text, error, integer, nil, bulk, array };

// The line a reply starts with. `text` lies in the bytes that were parsed; `number` is the integer,
// or the count of bytes (bulk) or elements (array) that follow.
struct ReplyHead {
  ReplyType type = ReplyType::nil;
  std::int64_t number = 0;
  std::string_view text;
  std::size_t bytes = 0;  // of the line, with its end
};

enum class Parsed : std::uint8_t { complete, incomplete, malformed };

Parsed parse_head(std::string_view bytes, ReplyHead& head);

struct Reply {
  ReplyType type = ReplyType::nil;
  std::int64_t number = 0;
  std::string text;  // of text, error and bulk
  std::vector<Reply> elements;

  bool is_error() const { return type == ReplyType::error; }
  // "MOVED" of "MOVED 3999 127.0.0.1:6381".
  std::string_view error_code() const;
};

// Puts a reply together from bytes that arrive in pieces.
class ReplyBuilder {
 public:
  // Takes what belongs to the reply off the front of `bytes`. After `complete`, take() is due.
  Parsed feed(std::string_view& bytes);
  Reply take();

 private:
  struct Open {
    Reply array;
    std::size_t missing = 0;
  };

  Parsed feed_bulk(std::string_view& bytes);
  Parsed begin(const ReplyHead& head);
  Parsed finish(Reply reply);
  bool charge(std::size_t bytes);

  std::vector<Open> open_;     // arrays that lack elements, the outermost first
  Reply bulk_;                 // the string that is being read
  std::size_t bulk_left_ = 0;  // of it, with its line end
  std::size_t charged_ = 0;
  Reply whole_;
};

// A command without a payload.
std::string encode_command(std::initializer_list<std::string_view> words);

// "SET key <payload> words…" in two parts; the payload's bytes go in between.
struct FramedCommand {
  std::string head;
  std::string tail;
};
FramedCommand encode_set(std::string_view key, std::uint64_t payload_bytes,
                         std::initializer_list<std::string_view> words);

}  // namespace vitrove::redis
