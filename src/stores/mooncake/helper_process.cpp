#include "stores/mooncake/helper_process.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/stoppable_wait.h"
#include "stores/mooncake/master_probe.h"
#include "vitrove/error.h"

namespace vitrove::mooncake {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds probe_period{250};
constexpr milliseconds leave_time{2000};
constexpr milliseconds unmap_time{5000};
constexpr std::chrono::seconds stable_time{10};
constexpr std::size_t longest_line = 500;

// Of a turn, so that a helper that never stops talking keeps the supervisor from nothing.
constexpr int reads_a_turn = 16;

std::string in_words(milliseconds time) {
  if (time.count() % 1000 != 0) return std::to_string(time.count()) + " ms";
  return std::to_string(time.count() / 1000) + " s";
}

wire::Payload bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Nothing leaves the supervisor's thread.
template <typename Action>
void attempt(const Action& action, std::string& trouble) noexcept {
  try {
    action();
  } catch (const std::exception& error) {
    try {
      trouble = error.what();
    } catch (const std::exception&) {  // then without a word
    }
  }
}

// True when the socket has ended: nobody holds its other end any more.
bool wait_for_end(int socket, milliseconds time) {
  const auto deadline = HelperProcess::Clock::now() + time;
  std::array<std::byte, 4096> ignored{};
  for (;;) {
    const auto left =
        std::chrono::ceil<milliseconds>(deadline - HelperProcess::Clock::now()).count();
    pollfd wanted{socket, POLLIN, 0};
    if (left <= 0 || ::poll(&wanted, 1, static_cast<int>(left)) == 0) return false;
    const ssize_t got = ::recv(socket, ignored.data(), ignored.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return true;
  }
}

}  // namespace

HelperProcess::HelperProcess(HelperOptions options)
    : options_(std::move(options)), next_pause_(options_.first_pause) {
  supervisor_ = std::thread([this] { supervise(); });
}

HelperProcess::~HelperProcess() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.request_stop();
  changed_.notify_all();
  link_.wake();
  supervisor_.join();
}

// --- for callers ---

CallResult HelperProcess::ask(Question question, const StoreContext& context) {
  const wire::Payload payload = wire::encode(question.items);
  std::unique_lock lock(mutex_);
  const auto known = [this] { return tried_ || stopping_; };
  if (!wait_until(changed_, lock, context.cancel, context.deadline, known)) {
    const bool left = context.cancel.stop_requested();
    return {left ? CallEnd::cancelled : CallEnd::timed_out, {}, std::move(question.block)};
  }
  if (phase_ != Phase::ready) return {CallEnd::lost, {}, std::move(question.block)};
  CallTable::Terms terms;
  terms.answers = question.items.size();
  terms.deadline = context.deadline;
  terms.cancel = context.cancel;
  terms.may_leave = question.may_leave;
  terms.given_up =
      std::min(context.deadline, Clock::now() + options_.call_time) + options_.hang_time;
  terms.block = std::move(question.block);
  const std::uint64_t call = begin(std::move(terms), question.type, payload);
  lock.unlock();
  // Who may leave has to hear more than an answer: his deadline, and that he is to leave.
  if (!question.may_leave) read_answers(call);
  return calls_.wait(call);
}

std::uint64_t HelperProcess::begin(CallTable::Terms terms, wire::Type type,
                                   const wire::Payload& payload) {
  const std::uint64_t call = calls_.add(std::move(terms));
  try {
    link_.send(type, call, payload);
  } catch (...) {  // out of memory: nothing was sent
    calls_.forget(call);
    throw;
  }
  return call;
}

void HelperProcess::add_region(std::uint32_t number, int fd, std::uint64_t bytes, Need need) {
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) return;
  std::lock_guard lock(mutex_);
  Region& region = regions_[number];
  region = {std::move(copy), bytes, need};
  if (loaded_) offer(number, region);
}

void HelperProcess::offer(std::uint32_t number, Region& region) {
  region.offered = true;
  link_.send(wire::Type::map, region_call | number,
             wire::encode(wire::Region{number, region.bytes}), region.fd.get());
}

void HelperProcess::remove_region(std::uint32_t number) {
  std::unique_lock lock(mutex_);
  const auto found = regions_.find(number);
  if (found == regions_.end()) return;
  const Region region = std::move(found->second);
  regions_.erase(found);
  if (!region.offered) return;
  // A helper that does not let go of the memory is killed for it.
  CallTable::Terms terms;
  terms.answers = 1;
  terms.given_up = Clock::now() + unmap_time;
  const std::uint64_t call =
      begin(std::move(terms), wire::Type::unmap, wire::encode(wire::Region{number, region.bytes}));
  lock.unlock();
  link_.wake();
  calls_.wait(call);
}

bool HelperProcess::has_region(std::uint32_t number) const {
  std::lock_guard lock(mutex_);
  const auto found = regions_.find(number);
  return found != regions_.end() && found->second.usable;
}

bool HelperProcess::takes_many_runs() const {
  std::lock_guard lock(mutex_);
  return many_runs_;
}

HelperProcess::Report HelperProcess::report() const {
  std::lock_guard lock(mutex_);
  Report report;
  const bool begins = phase_ == Phase::starting || phase_ == Phase::setting_up;
  report.state = phase_ == Phase::ready ? StoreState::ready
                 : begins && !tried_    ? StoreState::degraded
                                        : StoreState::down;
  report.detail = detail_;
  const bool is_refused =
      std::ranges::any_of(regions_, [](const auto& region) { return region.second.refused; });
  if (is_refused) report.detail += "; it refuses the pool's memory, so that values are copied";
  report.provider = provider_;
  report.starts = starts_;
  report.pid = pid_;
  return report;
}

bool HelperProcess::wait_ready(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return phase_ == Phase::ready; });
}

// --- the supervisor ---

void HelperProcess::supervise() noexcept {
  while (!is_stopping()) {
    Run run;
    attempt([&] { run_once(run); }, run.ended);
    const bool was_stable = run.ready_since && Clock::now() - *run.ready_since >= stable_time;
    end(run);
    if (!is_stopping()) pause(was_stable);
  }
}

void HelperProcess::run_once(Run& run) {
  start(run);
  if (run.child) serve(run);
}

bool HelperProcess::is_stopping() const {
  std::lock_guard lock(mutex_);
  return stopping_;
}

void HelperProcess::set_phase(Phase phase, std::string detail) {
  {
    std::lock_guard lock(mutex_);
    phase_ = phase;
    if (!detail.empty()) detail_ = std::move(detail);
    tried_ = tried_ || (phase != Phase::starting && phase != Phase::setting_up);
  }
  changed_.notify_all();
}

void HelperProcess::pause(bool was_stable) {
  std::unique_lock lock(mutex_);
  if (was_stable) next_pause_ = options_.first_pause;
  const milliseconds time = next_pause_;
  next_pause_ = std::min(time * 2, options_.longest_pause);
  changed_.wait_for(lock, time, [this] { return stopping_; });
}

void HelperProcess::start(Run& run) {
  try {
    run.child = std::make_unique<ChildProcess>(options_.command());
  } catch (const std::exception& error) {
    run.ended = error.what();
    return;
  }
  run.patience = Clock::now() + options_.start_time;
  link_.open(run.child->socket());
  std::lock_guard lock(mutex_);
  phase_ = Phase::starting;
  ++starts_;
  pid_ = run.child->pid();
}

void HelperProcess::serve(Run& run) {
  while (run.ended.empty() && !is_stopping()) {
    const auto events = link_.poll(run.child->words(), time_to_next_look(run));
    if (events.words) read_words(run);
    if (events.socket || run.has_more) read_frames(run);
    look_at_clock(run);
    look_at_master(run);
  }
}

int HelperProcess::time_to_next_look(const Run& run) const {
  if (run.has_more) return 0;
  Clock::time_point next = run.patience;
  if (const auto hung = calls_.first_given_up()) next = std::min(next, *hung);
  {
    std::lock_guard lock(mutex_);
    const bool probes = (run.started && !run.asked) || phase_ == Phase::master_lost;
    if (probes) next = std::min(next, run.next_probe);
  }
  const auto now = Clock::now();
  if (next <= now) return 0;
  // New calls do not wake the supervisor: it finds a hung one a little late instead.
  const Clock::duration nap = std::min<Clock::duration>(next - now, options_.hang_time / 4);
  return static_cast<int>(std::chrono::ceil<milliseconds>(nap).count());
}

void HelperProcess::look_at_clock(Run& run) {
  if (!run.ended.empty()) return;
  const auto now = Clock::now();
  if (now >= run.patience) {
    run.ended = std::string(run.asked ? "its set-up" : "loading Mooncake") + " took longer than " +
                in_words(options_.start_time);
    if (run.asked) run.ended += ": does the master hang?";
  } else if (const auto hung = calls_.first_given_up(); hung && now >= *hung) {
    run.ended = "it did not answer in time: does the master hang, or a client that lends memory?";
  }
}

void HelperProcess::look_at_master(Run& run) {
  if (!run.ended.empty() || !run.started || Clock::now() < run.next_probe) return;
  {
    std::lock_guard lock(mutex_);
    if (run.asked && phase_ != Phase::master_lost) return;
  }
  const std::string trouble =
      why_unreachable(options_.master, options_.connect_timeout, stop_.get_token());
  if (is_stopping()) return;
  run.next_probe = Clock::now() + probe_period;
  if (!trouble.empty()) {
    const std::string detail = "no master answers at " + options_.master + ": " + trouble;
    throttle_.log(spdlog::level::warn, "mooncake store: {}", detail);
    set_phase(run.asked ? Phase::master_lost : Phase::no_master, detail);
    return;
  }
  if (run.asked) {
    set_phase(Phase::ready, "ready");
    return;
  }
  run.asked = true;
  run.patience = Clock::now() + options_.start_time;
  set_phase(Phase::setting_up, {});
  link_.send(wire::Type::setup, 0, bytes_of(options_.setup));
}

// Whatever cannot be said for want of memory, the helper ends, and who waits for it is told.
void HelperProcess::end(Run& run) noexcept {
  link_.close();
  std::string how;
  std::string trouble;
  attempt([&] { stop_asking(run); }, trouble);
  if (run.child) {
    if (is_stopping()) let_leave(*run.child);
    run.child->kill();
    attempt([&] { await_last_holder(*run.child); }, trouble);
    attempt([&] { how = run.child->reap(); }, trouble);
    {
      std::lock_guard lock(mutex_);
      pid_ = -1;
      loaded_ = false;
      for (auto& [number, region] : regions_)
        region.offered = region.usable = region.refused = false;
    }
    calls_.lose_all();
  }
  attempt([&] { report_end(run, how); }, trouble);
}

// From here on nobody asks; but who has asked is told of his loss only when the helper is gone and
// works on his memory no more.
void HelperProcess::stop_asking(Run& run) {
  {
    std::lock_guard lock(mutex_);
    phase_ = Phase::starting;
  }
  if (run.child) set_phase(Phase::starting, "the helper process was ended: " + run.ended);
}

void HelperProcess::report_end(Run& run, const std::string& how) {
  std::string detail = run.ended;
  if (run.child) {
    read_words(run);
    detail = "the helper process was ended: " + run.ended + " (" + how + ")";
    if (!run.last_words.empty()) detail += "; its last words: " + run.last_words;
  }
  if (is_stopping()) return;
  throttle_.log(spdlog::level::warn, "mooncake store: {}", detail);
  set_phase(Phase::broken, detail);
}

// Until nobody holds the helper's end of the socket any more. What is left of it may be out of our
// reach, and may still write to what it was lent: so long as that is anything, it is not given
// back.
void HelperProcess::await_last_holder(const ChildProcess& child) {
  if (wait_for_end(child.socket(), leave_time)) return;
  constexpr std::string_view what = "something of its helper does not end";
  logger()->error("mooncake store: {}", what);
  set_phase(Phase::starting, std::string(what));
  calls_.let_leave();
  while (!is_stopping() && calls_.size() > 0) {
    child.kill();
    if (wait_for_end(child.socket(), leave_time)) return;
  }
}

// Leaving properly takes a helper's memory out of the cluster, where it lends some.
void HelperProcess::let_leave(const ChildProcess& child) {
  child.hang_up();
  wait_for_end(child.socket(), leave_time);
}

void HelperProcess::read_words(Run& run) {
  std::array<char, 4096> buffer{};
  for (int reads = 0; reads < reads_a_turn; ++reads) {
    const ssize_t got = ::read(run.child->words(), buffer.data(), buffer.size());
    if (got <= 0) return;
    for (const char c : std::string_view(buffer.data(), static_cast<std::size_t>(got))) {
      if (c != '\n') {
        if (run.line.size() < longest_line) run.line += c;
        continue;
      }
      logger()->debug("mooncake helper: {}", run.line);
      if (!run.line.empty()) run.last_words = std::exchange(run.line, {});
    }
  }
}

}  // namespace vitrove::mooncake
