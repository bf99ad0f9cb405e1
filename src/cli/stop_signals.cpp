#include "cli/stop_signals.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/unique_fd.h"
#include "cli/commands.h"
#include "server/encode_server.h"

namespace vitrove::cli {
namespace {

// Longer than connections and store calls get to notice that they are told to end.
constexpr std::chrono::seconds end_grace{6};
// What a shell calls the end by a signal. Not by the signal itself: the first process of a
// container would survive it.
constexpr int signalled = 128;

// Stores never show a half-written value, so leaving without destructors loses nothing but what was
// unfinished.
[[noreturn]] void end_now(int code) {
  logger()->flush();
  std::_Exit(code);
}

}  // namespace

StopSignals::StopSignals(std::chrono::microseconds drain_time) : drain_time_(drain_time) {
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

void StopSignals::drain(EncodeServer& server) {
  const std::lock_guard lock(mutex_);
  stage_ = Stage::serving;
  server_ = &server;
}

void StopSignals::leaving() {
  const std::lock_guard lock(mutex_);
  stage_ = Stage::leaving;
  server_ = nullptr;
  // The second signal may come when the drain is over already and nobody looks for it any more.
  if (at_once_) end_now(exit_failed);
}

// A thread of its own, since draining takes locks that a signal handler may not take.
void StopSignals::watch(const std::stop_token& stop) {
  const UniqueFd signals(signalfd(-1, &set_, SFD_CLOEXEC));
  const UniqueFd end(eventfd(0, EFD_CLOEXEC));
  const std::stop_callback wake(stop, [&end] { eventfd_write(end.get(), 1); });
  while (!stop.stop_requested()) {
    std::array<pollfd, 2> ready{pollfd{signals.get(), POLLIN, 0}, pollfd{end.get(), POLLIN, 0}};
    const int found = poll(ready.data(), ready.size(), poll_timeout());
    if (Clock::now() >= end_) on_overdue();
    if (found <= 0 || ready[0].revents == 0) continue;
    signalfd_siginfo signal{};
    if (read(signals.get(), &signal, sizeof signal) == sizeof signal) on_signal(signal.ssi_signo);
  }
}

int StopSignals::poll_timeout() const {
  if (end_ == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

void StopSignals::on_signal(unsigned number) {
  const std::lock_guard lock(mutex_);
  if (stage_ == Stage::starting) {
    logger()->warn("signal {} before the server was up: ending at once", number);
    end_now(signalled + static_cast<int>(number));
  }
  if (std::exchange(asked_, true)) {
    logger()->warn("second signal: ending at once");
    if (stage_ == Stage::leaving) end_now(exit_failed);
    at_once_ = true;
    server_->force_stop();
    return;
  }
  logger()->info("signal {}: draining", number);
  end_ = Clock::now() + drain_time_ + end_grace;
  if (server_ != nullptr) server_->begin_drain();
}

void StopSignals::on_overdue() {
  const std::lock_guard lock(mutex_);
  if (stage_ == Stage::leaving) {
    logger()->warn("ended with something still running that nobody waits for");
    end_now(exit_ok);
  }
  logger()->warn("ended with requests or puts unfinished");
  end_now(exit_failed);
}

}  // namespace vitrove::cli
