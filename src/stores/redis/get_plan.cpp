#include "stores/redis/get_plan.h"

#include <algorithm>

#include "stores/batch.h"
#include "stores/redis/errors.h"
#include "stores/redis/hash_slot.h"

namespace vitrove::redis {
namespace {

constexpr std::uint64_t part_bytes = 512 * 1024;

StoreResult get_result(const Command& command) {
  if (!command.answered) return command.fault.result();
  const Reply& reply = command.reply;
  if (reply.type == ReplyType::nil) return {StoreStatus::absent};
  if (reply.type != ReplyType::bulk) return result_of_error(reply);
  const auto size = static_cast<std::uint64_t>(reply.number);
  return {size == command.target_bytes ? StoreStatus::ok : StoreStatus::size_mismatch, size};
}

bool was_refused(const Command& command) {
  return command.answered && refuses_command(command.reply);
}

// The first `bytes` of the buffers, which are then gone from `rest`.
std::vector<MutableBuffer> take_front(std::vector<MutableBuffer>& rest, std::uint64_t bytes) {
  std::vector<MutableBuffer> front;
  auto at = rest.begin();
  while (bytes > 0) {
    const std::size_t count = std::min<std::uint64_t>(bytes, at->size());
    front.push_back(at->first(count));
    *at = at->subspan(count);
    bytes -= count;
    if (at->empty()) ++at;
  }
  rest.erase(rest.begin(), at);
  return front;
}

}  // namespace

StoreResult exist_result(const Command& command) {
  if (!command.answered) return command.fault.result();
  const Reply& reply = command.reply;
  if (reply.type != ReplyType::integer || reply.number < 0) return result_of_error(reply);
  // Nobody stores nothing: no bytes are no value.
  if (reply.number == 0) return {StoreStatus::absent};
  return {StoreStatus::ok, static_cast<std::uint64_t>(reply.number)};
}

void GetPlan::add(std::size_t key_index, const std::string& name, MutableBufferList buffers) {
  Get& get = gets_.emplace_back();
  get.key_index = key_index;
  get.first = commands_.size();
  get.bytes = total_bytes(buffers);
  const bool is_large = get.bytes > largest_whole_value;
  has_large_ = has_large_ || is_large;
  if (is_large && large_ == Large::in_parts) {
    get.name = name;
    get.buffers = buffers;
    add_parts(key_index, name, buffers);
  } else {
    Command& command = commands_.emplace_back();
    command.head = encode_command({"GET", name});
    command.target = buffers;
    command.target_bytes = get.bytes;
    command.key_index = key_index;
    command.slot = hash_slot(name);
  }
  get.count = commands_.size() - get.first;
}

void GetPlan::add_parts(std::size_t key_index, const std::string& name, MutableBufferList buffers) {
  const std::uint64_t bytes = total_bytes(buffers);
  const std::uint16_t slot = hash_slot(name);
  Command& size = commands_.emplace_back();
  size.head = encode_command({"STRLEN", name});
  size.slot = slot;
  std::vector<MutableBuffer> rest(buffers.begin(), buffers.end());
  for (std::uint64_t offset = 0; offset < bytes;) {
    Command& part = commands_.emplace_back();
    // A little that is left at the end, as a header makes it, comes with the last part.
    const std::uint64_t left = bytes - offset;
    part.target_bytes = left <= largest_whole_value ? left : part_bytes;
    part.head = encode_command(
        {"GETRANGE", name, std::to_string(offset), std::to_string(offset + part.target_bytes - 1)});
    part.target = targets_.emplace_back(take_front(rest, part.target_bytes));
    part.target_offset = offset;
    part.key_index = key_index;
    part.slot = slot;
    offset += part.target_bytes;
  }
}

void GetPlan::settle(std::span<StoreResult> results) const {
  for (const Get& get : gets_) {
    results[get.key_index] =
        get.is_in_parts() ? result_of_parts(get) : get_result(commands_[get.first]);
  }
}

StoreResult GetPlan::result_of_parts(const Get& get) const {
  const auto commands = commands_of(get);
  const StoreResult size = exist_result(commands.front());
  if (!size.ok()) return size;
  if (size.size != get.bytes) return {StoreStatus::size_mismatch, size.size};
  for (const Command& part : commands.subspan(1)) {
    const StoreResult result = get_result(part);
    // It was there when its size was asked for.
    if (result.status == StoreStatus::size_mismatch) return {StoreStatus::absent};
    if (!result.ok()) return result;
  }
  return size;
}

bool GetPlan::has_read_parts() const {
  return std::ranges::any_of(gets_, [&](const Get& get) {
    return get.is_in_parts() && commands_of(get).back().reply.type == ReplyType::bulk;
  });
}

Fault GetPlan::why_parts_are_refused() const {
  for (const Get& get : gets_) {
    const auto commands = commands_of(get);
    const auto refused = std::ranges::find_if(commands, was_refused);
    if (get.is_in_parts() && refused != commands.end()) return fault_of(refused->reply);
  }
  return {};
}

GetPlan GetPlan::refused_as_whole() const {
  GetPlan whole(Large::whole);
  for (const Get& get : gets_) {
    const bool is_refused = get.is_in_parts() && std::ranges::any_of(commands_of(get), was_refused);
    if (is_refused) whole.add(get.key_index, get.name, get.buffers);
  }
  return whole;
}

bool GetPlan::is_refused() const { return std::ranges::all_of(commands_, was_refused); }

}  // namespace vitrove::redis
