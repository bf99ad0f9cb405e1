// HelperProcess: keeps a helper running, and carries questions to it.
//
// A thread of its own starts the helper, waits for the master, has the helper set up, and starts
// another one, ever more patiently, when it ends, hangs, or says what the protocol does not allow.
// Constructing one therefore never blocks. A helper that leaves a call unanswered for `hang_time`
// after its deadline is killed; the callers whose own memory it worked on get it back only when
// nobody holds its end of the socket any more.
//
// Memory is offered as regions: shared memory files that each new helper is given anew.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/unique_fd.h"
#include "stores/mooncake/call_table.h"
#include "stores/mooncake/child_process.h"
#include "stores/mooncake/helper_link.h"
#include "vitrove/embedding_store.h"

namespace vitrove::mooncake {

struct HelperOptions {
  std::function<Command()> command;  // throws Error when there is nothing to start
  std::string setup;                 // JSON for the helper
  std::string master;                // who is waited for; empty: nobody
  std::chrono::milliseconds connect_timeout{1000};
  std::chrono::milliseconds start_time{30'000};  // for loading Mooncake, and for its set-up
  std::chrono::milliseconds hang_time{10'000};
  std::chrono::milliseconds call_time{60'000};  // of calls without a deadline
  std::chrono::milliseconds first_pause{250};   // before another helper is started; doubles
  std::chrono::milliseconds longest_pause{15'000};
};

class HelperProcess {
 public:
  using Clock = std::chrono::steady_clock;

  explicit HelperProcess(HelperOptions options);
  ~HelperProcess();
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;

  struct Question {
    wire::Type type = wire::Type::exist;
    std::vector<wire::Item> items;
    StagingMemory::Block block;  // what the runs lie in
    bool may_leave = false;      // no memory of the caller is named
  };
  // Blocks until the answer is there; a caller who may leave, until his deadline at most. Asks
  // nobody when no helper is ready, except that the very first attempt to get one is waited for.
  CallResult ask(Question question, const StoreContext& context);

  // `fd` stays the caller's. Each helper is offered the region. One that refuses a required region
  // is ended; else the report tells of it.
  enum class Need : std::uint8_t { required, useful };
  void add_region(std::uint32_t number, int fd, std::uint64_t bytes, Need need = Need::useful);
  // After it returns no helper knows the region any more.
  void remove_region(std::uint32_t number);
  // Whether the helper of now may be sent runs in that region.
  bool has_region(std::uint32_t number) const;
  // Whether it takes values of several runs.
  bool takes_many_runs() const;

  struct Report {
    StoreState state = StoreState::degraded;
    std::string detail;
    std::string provider;  // empty before the first helper told
    std::uint64_t starts = 0;
    pid_t pid = -1;
  };
  Report report() const;
  // Until a helper is ready; false when it was not in time.
  bool wait_ready(Clock::time_point deadline);

 private:
  // Answers about regions need no caller who waits.
  static constexpr std::uint64_t region_call = std::uint64_t{1} << 63;

  enum class Phase : std::uint8_t { starting, no_master, setting_up, ready, master_lost, broken };

  struct Region {
    UniqueFd fd;
    std::uint64_t bytes = 0;
    Need need = Need::useful;
    bool offered = false;  // to the helper of now
    bool usable = false;   // it said so
    bool refused = false;  // or that
  };

  // What the supervisor knows of the helper of now; touched by its thread alone.
  struct Run {
    std::unique_ptr<ChildProcess> child;
    bool started = false;                                   // Mooncake is loaded
    bool asked = false;                                     // to set up
    Clock::time_point patience = Clock::time_point::max();  // with loading and with the set-up
    Clock::time_point next_probe{};
    std::optional<Clock::time_point> ready_since;
    bool has_more = false;  // frames to read
    std::string line;       // of its words, not yet whole
    std::string last_words;
    std::string ended;  // why it has to end
  };

  void read_answers(std::uint64_t call) noexcept;
  bool take_answer(const HelperLink::Frame& frame) noexcept;
  std::uint64_t begin(CallTable::Terms terms, wire::Type type, const wire::Payload& payload);
  void supervise() noexcept;
  void run_once(Run& run);
  void start(Run& run);
  void serve(Run& run);
  void end(Run& run) noexcept;
  void stop_asking(Run& run);
  void report_end(Run& run, const std::string& how);
  void let_leave(const ChildProcess& child);
  void await_last_holder(const ChildProcess& child);
  bool is_stopping() const;
  void pause(bool was_stable);
  int time_to_next_look(const Run& run) const;
  void look_at_master(Run& run);
  void look_at_clock(Run& run);
  void read_words(Run& run);
  void read_frames(Run& run);
  void handle(Run& run, const wire::Header& header, const wire::Payload& payload);
  void handle_started(Run& run, const wire::Payload& payload);
  void handle_state(Run& run, const wire::Payload& payload);
  void handle_answer(Run& run, std::uint64_t call, const wire::Payload& payload);
  void handle_region(Run& run, std::uint32_t number, const std::vector<wire::Answer>& answers);
  void set_phase(Phase phase, std::string detail);
  void offer(std::uint32_t number, Region& region);

  const HelperOptions options_;
  CallTable calls_;
  HelperLink link_;
  LogThrottle throttle_{std::chrono::seconds(10)};

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  Phase phase_ = Phase::starting;
  bool tried_ = false;  // the first attempt has ended, well or badly
  bool stopping_ = false;
  std::stop_source stop_;  // of what blocks the supervisor
  bool many_runs_ = false;
  bool loaded_ = false;  // the helper of now takes regions
  std::string detail_ = "starting its helper";
  std::string provider_;
  std::uint64_t starts_ = 0;
  pid_t pid_ = -1;
  std::chrono::milliseconds next_pause_;
  std::map<std::uint32_t, Region> regions_;

  std::thread supervisor_;
};

}  // namespace vitrove::mooncake
