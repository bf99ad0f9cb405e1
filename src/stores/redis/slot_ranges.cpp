#include "stores/redis/slot_ranges.h"

namespace vitrove::redis {
namespace {

std::optional<Endpoint> server_of(const Reply& reply, const std::string& asked) {
  if (reply.elements.size() < 2) return std::nullopt;
  const Reply& host = reply.elements[0];
  const Reply& port = reply.elements[1];
  if (port.type != ReplyType::integer || port.number < 1 || port.number > 65535) {
    return std::nullopt;
  }
  if (host.type != ReplyType::bulk && host.type != ReplyType::nil) return std::nullopt;
  if (host.text == "?") return std::nullopt;  // it does not know
  return Endpoint{host.text.empty() ? asked : host.text, static_cast<int>(port.number)};
}

bool is_slot(const Reply& reply) {
  return reply.type == ReplyType::integer && reply.number >= 0 && reply.number < slot_count;
}

}  // namespace

std::optional<std::vector<SlotRange>> parse_slot_ranges(const Reply& reply,
                                                        const std::string& asked) {
  if (reply.type != ReplyType::array) return std::nullopt;
  std::vector<SlotRange> ranges;
  for (const Reply& range : reply.elements) {
    if (range.elements.size() < 3) continue;
    const Reply& first = range.elements[0];
    const Reply& last = range.elements[1];
    if (!is_slot(first) || !is_slot(last) || first.number > last.number) continue;
    const auto server = server_of(range.elements[2], asked);
    if (!server) continue;
    ranges.push_back({static_cast<std::uint16_t>(first.number),
                      static_cast<std::uint16_t>(last.number), *server});
  }
  return ranges;
}

}  // namespace vitrove::redis
