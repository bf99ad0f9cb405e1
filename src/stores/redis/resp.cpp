#include "stores/redis/resp.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace vitrove::redis {
namespace {

constexpr std::size_t reply_cost = sizeof(Reply);

// A whole number and nothing else: no sign but "-", no blanks.
bool parse_number(std::string_view text, std::int64_t& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && stop == end && !text.empty();
}

// -1 stands for "nothing"; no other negative count means anything.
Parsed parse_count(std::string_view text, ReplyType type, ReplyHead& head) {
  if (!parse_number(text, head.number) || head.number < -1 || head.number > max_bulk_bytes) {
    return Parsed::malformed;
  }
  head.type = head.number == -1 ? ReplyType::nil : type;
  return Parsed::complete;
}

void append_word(std::string& out, std::string_view word) {
  out += '$';
  out += std::to_string(word.size());
  out += end_of_line;
  out += word;
  out += end_of_line;
}

void append_array_head(std::string& out, std::size_t words) {
  out += '*';
  out += std::to_string(words);
  out += end_of_line;
}

}  // namespace

Parsed parse_head(std::string_view bytes, ReplyHead& head) {
  const std::size_t end = bytes.substr(0, max_line_bytes).find(end_of_line);
  if (end == bytes.npos) {
    return bytes.size() >= max_line_bytes ? Parsed::malformed : Parsed::incomplete;
  }
  if (end == 0) return Parsed::malformed;
  head = ReplyHead{};
  head.bytes = end + end_of_line.size();
  const std::string_view rest = bytes.substr(1, end - 1);
  switch (bytes.front()) {
    case '+':
      head.type = ReplyType::text;
      head.text = rest;
      return Parsed::complete;
    case '-':
      head.type = ReplyType::error;
      head.text = rest;
      return Parsed::complete;
    case ':':
      head.type = ReplyType::integer;
      return parse_number(rest, head.number) ? Parsed::complete : Parsed::malformed;
    case '$':
      return parse_count(rest, ReplyType::bulk, head);
    case '*':
      return parse_count(rest, ReplyType::array, head);
    default:
      return Parsed::malformed;
  }
}

std::string_view Reply::error_code() const {
  if (!is_error()) return {};
  return std::string_view(text).substr(0, text.find(' '));
}

bool ReplyBuilder::charge(std::size_t bytes) {
  if (bytes > max_reply_bytes - charged_) return false;
  charged_ += bytes;
  return true;
}

Parsed ReplyBuilder::feed(std::string_view& bytes) {
  while (true) {
    Parsed parsed = Parsed::incomplete;
    if (bulk_left_ > 0) {
      parsed = feed_bulk(bytes);
    } else {
      ReplyHead head;
      parsed = parse_head(bytes, head);
      if (parsed != Parsed::complete) return parsed;
      bytes.remove_prefix(head.bytes);
      parsed = begin(head);
    }
    if (parsed != Parsed::incomplete) return parsed;
    if (bytes.empty()) return Parsed::incomplete;
  }
}

// `incomplete` from here and from begin() means that more of the reply is to come.
Parsed ReplyBuilder::feed_bulk(std::string_view& bytes) {
  const std::size_t text_left =
      bulk_left_ > end_of_line.size() ? bulk_left_ - end_of_line.size() : 0;
  const std::string_view text = bytes.substr(0, text_left);
  bulk_.text += text;
  bulk_left_ -= text.size();
  bytes.remove_prefix(text.size());
  while (bulk_left_ > 0 && bulk_left_ <= end_of_line.size() && !bytes.empty()) {
    if (bytes.front() != end_of_line[end_of_line.size() - bulk_left_]) return Parsed::malformed;
    bytes.remove_prefix(1);
    --bulk_left_;
  }
  if (bulk_left_ > 0) return Parsed::incomplete;
  return finish(std::exchange(bulk_, Reply{}));
}

Parsed ReplyBuilder::begin(const ReplyHead& head) {
  Reply reply;
  reply.type = head.type;
  reply.number = head.number;
  reply.text = head.text;
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(head.number, 0));
  if (head.type == ReplyType::bulk) {
    if (!charge(reply_cost + count)) return Parsed::malformed;
    bulk_ = std::move(reply);
    bulk_left_ = count + end_of_line.size();
    return Parsed::incomplete;
  }
  if (!charge(reply_cost + head.text.size())) return Parsed::malformed;
  if (head.type != ReplyType::array || count == 0) return finish(std::move(reply));
  // Elements are charged as they come, so that a count alone makes nobody allocate.
  if (open_.size() == max_reply_depth) return Parsed::malformed;
  open_.push_back({std::move(reply), count});
  return Parsed::incomplete;
}

Parsed ReplyBuilder::finish(Reply reply) {
  while (!open_.empty()) {
    Open& parent = open_.back();
    parent.array.elements.push_back(std::move(reply));
    if (--parent.missing > 0) return Parsed::incomplete;
    reply = std::move(parent.array);
    open_.pop_back();
  }
  whole_ = std::move(reply);
  return Parsed::complete;
}

Reply ReplyBuilder::take() {
  charged_ = 0;
  return std::exchange(whole_, Reply{});
}

std::string encode_command(std::initializer_list<std::string_view> words) {
  std::string out;
  append_array_head(out, words.size());
  for (const std::string_view word : words) append_word(out, word);
  return out;
}

FramedCommand encode_set(std::string_view key, std::uint64_t payload_bytes,
                         std::initializer_list<std::string_view> words) {
  FramedCommand framed;
  append_array_head(framed.head, 3 + words.size());
  append_word(framed.head, "SET");
  append_word(framed.head, key);
  framed.head += '$';
  framed.head += std::to_string(payload_bytes);
  framed.head += end_of_line;
  framed.tail = end_of_line;
  for (const std::string_view word : words) append_word(framed.tail, word);
  return framed;
}

}  // namespace vitrove::redis
