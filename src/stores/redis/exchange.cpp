#include "stores/redis/exchange.h"

#include <algorithm>
#include <cerrno>

#include "stores/batch.h"
#include "stores/redis/window.h"

namespace vitrove::redis {
namespace {

constexpr std::size_t max_pieces = 256;  // of one read

// So that the servers of a cluster take turns.
constexpr int max_reads_a_step = 16;

Fault stop_fault(StoreStatus status) {
  return {status, 0, status == StoreStatus::cancelled ? "cancelled" : "the deadline has passed"};
}

}  // namespace

Exchange::Exchange(Connection& connection, std::vector<Command*> commands,
                   const StoreContext& context)
    : connection_(connection),
      commands_(std::move(commands)),
      context_(context),
      sender_(commands_, owed_bytes_window(connection.stream().fd())),
      receiver_(commands_, context) {}

void Exchange::step() {
  if (must_stop()) return;
  do {
    send();
    receive();
    // An answer may have made room for more commands.
  } while (can_send());
}

bool Exchange::can_send() {
  return is_running() && !send_blocked_ && send_error_ == 0 && sender_.has_work();
}

bool Exchange::must_stop() {
  const auto reason = stop_reason(context_);
  if (reason) stop(stop_fault(*reason));
  return reason.has_value();
}

void Exchange::send() {
  send_blocked_ = false;
  while (can_send()) {
    const IoResult result = sender_.send(connection_.stream());
    if (result.moved()) {
      last_moved_ = Clock::now();
      // Answers are read before more is sent: the server may be waiting for room, too.
      if (sender_.has_work()) send_blocked_ = true;
    } else if (result.blocked()) {
      send_blocked_ = true;
    } else {
      send_error_ = result.error_number == 0 ? EPIPE : result.error_number;
    }
  }
}

void Exchange::receive() {
  read_awaits_room_ = false;
  may_read_more_ = false;
  for (int reads = 0; is_running() && reads < max_reads_a_step; ++reads) {
    if (!understand_buffer()) return;
    if (can_send()) return;  // before the server has nothing left to do
    if (!read_once()) return;
  }
  if (is_running()) may_read_more_ = understand_buffer();
}

// False when the exchange has ended.
bool Exchange::understand_buffer() {
  ReadBuffer& buffer = connection_.buffer();
  while (!receiver_.all_answered()) {
    if (buffer.empty()) return true;
    // An answer to a command that was not sent yet would be somebody else's.
    if (receiver_.answered() == sender_.begun()) {
      lose(EPROTO);
      return false;
    }
    const Command& command = *commands_[receiver_.answered()];
    const auto understood = receiver_.understand(buffer);
    if (understood == Receiver::Understood::malformed) lose(EPROTO);
    if (understood == Receiver::Understood::answered) sender_.note_answered(command);
    if (!is_running() || must_stop()) return false;
    if (understood == Receiver::Understood::needs_more) return true;
  }
  if (!buffer.empty()) {
    lose(EPROTO);
  } else if (send_error_ != 0 || sender_.has_work()) {
    // The last command was answered before it was sent in whole. The answers stand; but what comes
    // next on this connection would be taken for the rest of it.
    lose(EPIPE);
  } else {
    state_ = State::done;
  }
  return false;
}

// False when nothing more is to be had now.
bool Exchange::read_once() {
  std::array<iovec, max_pieces> pieces;
  const std::size_t count = receiver_.targets(connection_.buffer(), pieces);
  const IoResult result = connection_.stream().read(std::span(pieces).first(count));
  if (result.blocked()) {
    read_awaits_room_ = result.kind == IoResult::Kind::wants_write;
    return false;
  }
  if (!result.moved()) {
    const int reason = result.error_number == 0 ? ECONNRESET : result.error_number;
    lose(send_error_ != 0 ? send_error_ : reason);
    return false;
  }
  last_moved_ = Clock::now();
  receiver_.received(result.bytes, connection_.buffer());
  if (!connection_.stream().ends_with_short_read()) return true;
  std::size_t room = 0;
  for (const iovec& piece : std::span(pieces).first(count)) room += piece.iov_len;
  if (result.bytes == room) return true;
  understand_buffer();
  return false;
}

pollfd Exchange::awaited() const {
  const bool writes = send_blocked_ || read_awaits_room_;
  return {connection_.stream().fd(), static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0};
}

void Exchange::lose(int error_number) {
  end(State::broken,
      {StoreStatus::unavailable, error_number,
       error_number == EPROTO ? "the server does not speak RESP" : "the connection was lost"});
}

void Exchange::end(State state, const Fault& fault) {
  if (!is_running()) return;
  state_ = state;
  for (Command* const command : commands_) {
    if (!command->answered) command->fault = fault;
  }
}

void drive(std::span<const std::unique_ptr<Exchange>> exchanges, const StoreContext& context,
           Clock::duration patience) {
  const Waiter waiter(context.cancel);
  std::vector<pollfd> sockets;
  while (true) {
    sockets.clear();
    auto until = context.deadline;
    bool is_ready = false;
    for (const auto& exchange : exchanges) {
      if (exchange->is_running()) exchange->step();
      if (!exchange->is_running()) continue;
      is_ready = is_ready || exchange->is_ready();
      sockets.push_back(exchange->awaited());
      until = std::min(until, exchange->last_moved() + patience);
    }
    if (sockets.empty()) return;
    if (is_ready || waiter.wait(sockets, until) != Waiter::Woken::timeout) continue;
    for (const auto& exchange : exchanges) {
      if (Clock::now() < exchange->last_moved() + patience) continue;
      exchange->stop({StoreStatus::timeout, 0, "the server is silent"});
    }
  }
}

}  // namespace vitrove::redis
