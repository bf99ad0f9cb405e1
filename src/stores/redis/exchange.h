// The commands of one call over one connection: sent and answered in order, many at a time.
//
// The calling thread moves the bytes. How much may be owed to us is bounded, so that a server never
// has to hold a whole batch of values for us. Buffers of the caller are touched only within step():
// when the call returns, nothing touches them any more. A connection whose exchange did not end
// `done` owes answers, or has lost its place in them, and must be closed.
#pragma once

#include <span>
#include <vector>

#include "stores/redis/network.h"
#include "stores/redis/receiver.h"
#include "stores/redis/sender.h"

namespace vitrove::redis {

class Exchange {
 public:
  Exchange(Connection& connection, std::vector<Command*> commands, const StoreContext& context);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  enum class State { running, done, stopped, broken };
  State state() const { return state_; }
  bool is_running() const { return state_ == State::running; }

  // Moves what can be moved without blocking.
  void step();
  // Whether the next step need not wait for anything.
  bool is_ready() const { return may_read_more_; }
  // What to wait for before the next step.
  pollfd awaited() const;
  // Ends it; commands without an answer get the fault.
  void stop(const Fault& fault) { end(State::stopped, fault); }

  Clock::time_point last_moved() const { return last_moved_; }

 private:
  bool can_send();
  void send();
  void receive();
  bool understand_buffer();
  bool read_once();
  void end(State state, const Fault& fault);
  void lose(int error_number);
  bool must_stop();

  Connection& connection_;
  const std::vector<Command*> commands_;
  const StoreContext& context_;
  Sender sender_;
  Receiver receiver_;
  State state_ = State::running;
  Clock::time_point last_moved_ = Clock::now();
  bool send_blocked_ = false;
  bool may_read_more_ = false;     // TLS: bytes may be left that poll() knows nothing of
  bool read_awaits_room_ = false;  // TLS: the read goes on when something can be written
  int send_error_ = 0;             // then only what the server still has to say is read
};

// Steps all until each has ended: done, broken, or stopped by deadline, cancellation, or a server
// that was silent for `patience`.
void drive(std::span<const std::unique_ptr<Exchange>> exchanges, const StoreContext& context,
           Clock::duration patience);

}  // namespace vitrove::redis
