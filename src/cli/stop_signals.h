// StopSignals: SIGTERM, SIGINT and SIGHUP (stop_set.h) for as long as it lives, so that a process
// that is told to end does end, whatever hangs: a model that does not finish loading, an encoder's
// run that nobody waits for any more, a store that does not close.
//
//   StopSignals signals(drain_time);  // before any other thread: all of them inherit the mask
//   ... make and start the server     // a signal ends the process: nothing was promised yet
//   signals.drain(server);            // the first one drains, a second one ends at once
//   server.wait();
//   signals.leaving();                // drained; a second one, or time, ends what is left
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <thread>

#include "cli/stop_set.h"

namespace vitrove {
class EncodeServer;
}

namespace vitrove::cli {

class StopSignals {
 public:
  // `drain_time`: from the first signal to the end of the drain. Everything has to be over a little
  // later, or is left behind.
  explicit StopSignals(std::chrono::microseconds drain_time);
  ~StopSignals() = default;
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // `server` must live until leaving().
  void drain(EncodeServer& server);
  // Everything accepted was answered and all puts were flushed: what is not over in time is no
  // failure.
  void leaving();

 private:
  using Clock = std::chrono::steady_clock;
  enum class Stage : std::uint8_t { starting, serving, leaving };

  void watch(const std::stop_token& stop);
  void on_signal(unsigned number);
  void on_overdue();
  int poll_timeout() const;

  const std::chrono::microseconds drain_time_;
  const sigset_t set_ = stop_set();
  std::mutex mutex_;
  Stage stage_ = Stage::starting;
  bool at_once_ = false;  // a second signal came while the server drained
  EncodeServer* server_ = nullptr;
  // Of the watching thread alone.
  Clock::time_point end_ = Clock::time_point::max();
  bool asked_ = false;
  std::jthread thread_;
};

}  // namespace vitrove::cli
