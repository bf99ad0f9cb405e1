#include "stores/redis/lister.h"

#include <cstring>

#include "stores/batch.h"
#include "stores/redis/errors.h"

namespace vitrove::redis {
namespace {

constexpr std::string_view page_size = "512";

// What SCAN would take for a pattern stands for itself.
std::string pattern_for(const std::string& prefix) {
  std::string pattern;
  for (const char c : prefix) {
    if (std::string_view("*?[]\\^-").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern + "vt1-*";
}

bool is_page(const Reply& reply) {
  return reply.elements.size() == 2 && reply.elements[0].type == ReplyType::bulk &&
         reply.elements[1].type == ReplyType::array;
}

// Why the server did not tell; not that the value is gone, or is no value of ours.
Fault refusal_of(const Reply& reply) {
  if (!reply.is_error()) return {};
  const auto code = reply.error_code();
  if (code == "WRONGTYPE" || code == "MOVED" || code == "ASK") return {};
  return fault_of(reply);
}

// From the answers to OBJECT IDLETIME, STRLEN and perhaps GETRANGE; nothing when it is gone or no
// string.
std::optional<ListedValue> describe(const EmbeddingKey& key, std::span<const Command> answers) {
  const Reply& size = answers[1].reply;
  if (size.type != ReplyType::integer || size.number <= 0) return std::nullopt;
  ListedValue value;
  value.key = key;
  value.size = static_cast<std::uint64_t>(size.number);
  const Reply& idle = answers[0].reply;  // an error with some eviction policies
  if (idle.type == ReplyType::integer && idle.number >= 0) {
    value.last_used = std::chrono::system_clock::now() - std::chrono::seconds(idle.number);
  }
  if (answers.size() < 3) return value;
  const Reply& header = answers[2].reply;
  if (header.type == ReplyType::bulk && header.text.size() == value_header_size) {
    std::memcpy(value.header.emplace().data(), header.text.data(), value_header_size);
  }
  return value;
}

}  // namespace

Lister::Lister(Client& client, std::string prefix, const ListOptions& options, const Visit& visit,
               const StoreContext& context)
    : client_(client),
      prefix_(std::move(prefix)),
      pattern_(pattern_for(prefix_)),
      options_(options),
      visit_(visit),
      context_(context) {}

StoreResult Lister::run() {
  Fault fault;
  const auto nodes = client_.fleet().all_serving(context_, fault);
  if (nodes.empty()) return fault.result();
  StoreResult result;
  for (const auto& node : nodes) {
    const StoreResult listed = list_server(node);
    if (result.ok()) result = listed;
    if (has_seen_enough_) break;  // the others say themselves that there is no more time
  }
  return result;
}

StoreResult Lister::list_server(const Fleet::NodePtr& node) {
  std::string cursor = "0";
  do {
    if (const auto reason = stop_reason(context_)) return {*reason};
    Command scan;
    scan.head = encode_command({"SCAN", cursor, "MATCH", pattern_, "COUNT", page_size});
    client_.run_at(node, {&scan, 1}, Use::read, context_);
    if (!scan.answered) return scan.fault.result();
    if (scan.reply.is_error()) return fault_of(scan.reply).result();
    if (!is_page(scan.reply)) return odd_answer().result();
    cursor = scan.reply.elements[0].text;
    const StoreResult visited = visit_page(node, fresh_keys(scan.reply.elements[1]));
    if (!visited.ok() || has_seen_enough_) return visited;
  } while (cursor != "0");
  return {};
}

std::vector<EmbeddingKey> Lister::fresh_keys(const Reply& page) {
  std::vector<EmbeddingKey> keys;
  for (const Reply& name : page.elements) {
    if (!name.text.starts_with(prefix_)) continue;
    const auto key = EmbeddingKey::parse(std::string_view(name.text).substr(prefix_.size()));
    if (key && seen_.insert(*key).second) keys.push_back(*key);
  }
  return keys;
}

StoreResult Lister::visit_page(const Fleet::NodePtr& node, const std::vector<EmbeddingKey>& keys) {
  const std::size_t commands_a_key = options_.with_header ? 3 : 2;
  const std::string last_of_header = std::to_string(value_header_size - 1);
  std::vector<Command> commands(keys.size() * commands_a_key);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string name = prefix_ + keys[i].text();
    Command* const command = &commands[commands_a_key * i];
    command[0].head = encode_command({"OBJECT", "IDLETIME", name});  // before anything is a use
    command[1].head = encode_command({"STRLEN", name});
    if (!options_.with_header) continue;
    command[2].head = encode_command({"GETRANGE", name, "0", last_of_header});
  }
  client_.run_at(node, commands, Use::read, context_);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto answers = std::span(commands).subspan(commands_a_key * i, commands_a_key);
    for (const Command& command : answers) {
      // OBJECT IDLETIME is refused with some eviction policies.
      const bool is_idle_time = &command == answers.data();
      const Fault fault = !command.answered ? command.fault
                          : is_idle_time    ? Fault{}
                                            : refusal_of(command.reply);
      if (fault) return fault.result();
    }
    const auto value = describe(keys[i], answers);
    has_seen_enough_ = value && !visit_(*value);
    if (has_seen_enough_) break;
  }
  return {};
}

}  // namespace vitrove::redis
