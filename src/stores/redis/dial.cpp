#include "stores/redis/dial.h"

#include <cerrno>
#include <charconv>
#include <system_error>
#include <vector>

#include "stores/net/connect.h"
#include "stores/redis/errors.h"
#include "stores/redis/exchange.h"

namespace vitrove::redis {
namespace {

// The commands that make a connection ready, sent at once.
class Greeting {
 public:
  explicit Greeting(const RedisStoreOptions& options) : options_(options) {
    if (!options.password.empty() || !options.user.empty()) {
      login_.head = options.user.empty() ? encode_command({"AUTH", options.password})
                                         : encode_command({"AUTH", options.user, options.password});
      all_.push_back(&login_);
    }
    hello_.head = encode_command({"HELLO"});
    all_.push_back(&hello_);
    select_.head = encode_command({"SELECT", std::to_string(options.database)});
    if (options.database != 0) all_.push_back(&select_);
    limit_.head = ask_value_limit();
    memory_.head = encode_command({"INFO", "memory"});
    ping_.head = encode_command({"PING"});
    all_.push_back(&limit_);
    all_.push_back(&memory_);
    all_.push_back(&ping_);
  }

  const std::vector<Command*>& commands() const { return all_; }

  // After the answers have come.
  Fault verdict() const {
    // The server's text may repeat what it was told, and so a password.
    if (login_.answered && login_.reply.is_error()) {
      return {StoreStatus::denied, EACCES,
              "login refused (" + std::string(login_.reply.error_code()) + ")"};
    }
    if (Fault fault = check_mode(fact("mode"))) return fault;
    for (const Command* command : {&select_, &ping_}) {
      if (command->reply.is_error()) return fault_of(command->reply);
    }
    return {};
  }

  std::optional<ServerMemory> memory() const { return parse_server_memory(memory_.reply.text); }

  std::optional<std::uint64_t> max_value_bytes() const { return parse_value_limit(limit_.reply); }

 private:
  // Of what HELLO tells; empty for servers that do not know it (before Redis 6).
  std::string_view fact(std::string_view name) const {
    const auto& facts = hello_.reply.elements;
    for (std::size_t i = 0; i + 1 < facts.size(); i += 2) {
      if (facts[i].text == name) return facts[i + 1].text;
    }
    return {};
  }

  Fault check_mode(std::string_view mode) const {
    if (mode == "sentinel") {
      return {StoreStatus::denied, 0,
              "this is a Sentinel, which is not supported: name the server itself"};
    }
    if (mode == "cluster" && !options_.cluster) {
      return {StoreStatus::denied, 0,
              "this is a node of a cluster: write redis+cluster:// (or rediss+cluster://)"};
    }
    if (mode == "standalone" && options_.cluster) {
      return {StoreStatus::denied, 0, "this is no cluster: write redis:// (or rediss://)"};
    }
    return {};
  }

  const RedisStoreOptions& options_;
  Command login_;
  Command hello_;
  Command select_;
  Command limit_;
  Command memory_;
  Command ping_;
  std::vector<Command*> all_;
};

void greet(Dialed& dialed, const Settings& settings, const StoreContext& context) {
  const Greeting greeting(settings.options);
  std::vector<std::unique_ptr<Exchange>> exchange;
  exchange.push_back(std::make_unique<Exchange>(*dialed.connection, greeting.commands(), context));
  drive(exchange, context, settings.options.connect_timeout);
  const auto& commands = greeting.commands();
  for (const Command* command : commands) {
    if (command->fault) dialed.fault = command->fault;
  }
  // Two clocks run out at nearly the same moment; what there is to say is the same.
  const bool is_silent = !commands.front()->answered && dialed.fault.status == StoreStatus::timeout;
  if (is_silent) dialed.fault.detail = "the server is silent";
  // Refused clients get an error before the connection is closed.
  const Reply& first = commands.front()->reply;
  if (dialed.fault && first.is_error() && commands.front()->answered) {
    dialed.fault = fault_of(first);
    // Other errors may repeat what they were sent: a password.
    const bool is_full = dialed.fault.error_number == EUSERS;
    if (!is_full) dialed.fault.detail = std::string(first.error_code()) + " after connecting";
  }
  if (!dialed.fault) dialed.fault = greeting.verdict();
  dialed.max_value_bytes = greeting.max_value_bytes();
  dialed.memory = greeting.memory();
}

}  // namespace

std::string ask_value_limit() { return encode_command({"CONFIG", "GET", "proto-max-bulk-len"}); }

std::optional<std::uint64_t> parse_value_limit(const Reply& reply) {
  const auto& pair = reply.elements;
  std::uint64_t bytes = 0;
  if (pair.size() != 2) return std::nullopt;
  const std::string& text = pair[1].text;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc{} || bytes == 0) return std::nullopt;
  return bytes;
}

Dialed dial(const Endpoint& endpoint, const Settings& settings, Clock::time_point deadline,
            const std::stop_token& cancel) {
  Dialed dialed;
  const auto addresses = net::resolve(endpoint, deadline, cancel, dialed.fault);
  if (dialed.fault) return dialed;
  UniqueFd socket = net::connect_to_any(addresses, deadline, cancel, dialed.fault);
  if (dialed.fault) return dialed;
  std::unique_ptr<Stream> stream = settings.tls
                                       ? settings.tls->handshake(std::move(socket), endpoint.host,
                                                                 deadline, cancel, dialed.fault)
                                       : make_plain_stream(std::move(socket));
  if (!stream) return dialed;
  dialed.connection = std::make_unique<Connection>(std::move(stream));
  StoreContext context;
  context.deadline = deadline;
  context.cancel = cancel;
  greet(dialed, settings, context);
  if (dialed.fault) dialed.connection.reset();
  return dialed;
}

}  // namespace vitrove::redis
