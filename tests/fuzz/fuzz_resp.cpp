// What a server sends: any bytes either are replies, the same however they are cut, or refused. The
// first byte says how they are cut.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check.h"
#include "stores/redis/errors.h"
#include "stores/redis/receiver.h"
#include "stores/redis/slot_ranges.h"

namespace {

using namespace vitrove;
using namespace vitrove::redis;

// Everything that was understood, as text.
struct Heard {
  std::string text;
  bool malformed = false;
  bool operator==(const Heard&) const = default;
};

void write(const Reply& reply, std::size_t depth, std::string& text) {
  fuzz::check(depth <= max_reply_depth, "nesting is bounded");
  text += static_cast<char>('a' + static_cast<int>(reply.type));
  text += std::to_string(reply.number) + "|" + reply.text;
  for (const Reply& element : reply.elements) write(element, depth + 1, text);
}

void judge(const Reply& reply) {
  if (const auto redirect = redirect_of(reply)) {
    fuzz::check(redirect->port > 0 && redirect->port < 65536, "a redirect has a port");
  }
  if (reply.is_error()) fuzz::check(bool(fault_of(reply)), "an error is a fault");
  const auto ranges = parse_slot_ranges(reply, "asked");
  if (!ranges) return;
  for (const SlotRange& range : *ranges) {
    fuzz::check(range.first <= range.last && range.last < slot_count, "slots are slots");
  }
}

// As replies in general.
Heard hear_replies(std::string_view bytes, std::size_t step) {
  ReplyBuilder builder;
  Heard heard;
  std::string held;
  while (!bytes.empty()) {
    const std::size_t count = std::min(step, bytes.size());
    held += bytes.substr(0, count);
    bytes.remove_prefix(count);
    std::string_view rest = held;
    Parsed parsed = Parsed::complete;
    while (!rest.empty() && (parsed = builder.feed(rest)) == Parsed::complete) {
      const Reply reply = builder.take();
      judge(reply);
      write(reply, 0, heard.text);
    }
    if (parsed == Parsed::malformed) {
      heard.malformed = true;
      return heard;
    }
    held = std::string(rest);
  }
  return heard;
}

// As the answers to gets of three values, of which the second is read into two buffers.
Heard hear_values(std::string_view bytes, std::size_t step) {
  constexpr std::array<std::size_t, 3> sizes = {3, 40, 20'000};
  std::array<std::vector<std::byte>, 3> values;
  std::array<std::vector<MutableBuffer>, 3> buffers;
  std::array<Command, 3> commands;
  std::vector<Command*> list;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    values[i].resize(sizes[i]);
    const MutableBuffer whole(values[i]);
    buffers[i] = {whole.first(sizes[i] / 3), whole.subspan(sizes[i] / 3)};
    commands[i].target = buffers[i];
    commands[i].target_bytes = sizes[i];
    commands[i].asking = i == 1;
    list.push_back(&commands[i]);
  }
  const StoreContext context;
  Receiver receiver(list, context);
  ReadBuffer buffer;
  Heard heard;
  while (!receiver.all_answered() && !heard.malformed) {
    const auto understood =
        buffer.empty() ? Receiver::Understood::needs_more : receiver.understand(buffer);
    heard.malformed = understood == Receiver::Understood::malformed;
    if (understood != Receiver::Understood::needs_more) continue;
    if (bytes.empty()) break;
    std::array<iovec, 4> pieces;
    const std::size_t count = receiver.targets(buffer, pieces);
    std::size_t left = std::min(step, bytes.size());
    std::size_t moved = 0;
    for (std::size_t i = 0; i < count && left > 0; ++i) {
      const std::size_t part = std::min(left, pieces[i].iov_len);
      std::copy_n(bytes.data() + moved, part, static_cast<char*>(pieces[i].iov_base));
      moved += part;
      left -= part;
    }
    fuzz::check(moved > 0, "there is room for more");
    bytes.remove_prefix(moved);
    receiver.received(moved, buffer);
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!commands[i].answered) break;
    write(commands[i].reply, 0, heard.text);
    const Reply& reply = commands[i].reply;
    if (reply.type != ReplyType::bulk) continue;
    if (static_cast<std::size_t>(reply.number) != sizes[i]) continue;
    heard.text.append(reinterpret_cast<const char*>(values[i].data()), values[i].size());
  }
  return heard;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t step = std::size_t{1} + data[0];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  fuzz::check(hear_replies(bytes, step) == hear_replies(bytes, size), "cuts make no difference");
  fuzz::check(hear_values(bytes, step) == hear_values(bytes, size), "cuts make no difference");
  return 0;
}
