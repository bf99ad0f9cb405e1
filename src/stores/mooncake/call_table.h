// CallTable: the questions that a helper has been asked and not yet answered.
//
// A call keeps what it lends to the helper (staging blocks) until the helper has answered, however
// late, or is gone; its caller may have left long before. An id is never used twice, so a late
// answer meets the call it belongs to or none. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "stores/mooncake/staging.h"
#include "stores/mooncake/wire.h"

namespace vitrove::mooncake {

enum class CallEnd : std::uint8_t {
  answered,
  timed_out,
  cancelled,
  lost,  // the helper is gone, or was never there
};

struct CallResult {
  CallEnd end = CallEnd::lost;
  std::vector<wire::Answer> answers;  // as many as were asked for when answered
  StagingMemory::Block block;         // back, unless the caller left
};

class CallTable {
 public:
  using Clock = std::chrono::steady_clock;

  struct Terms {
    std::size_t answers = 0;     // how many belong to it
    Clock::time_point deadline;  // when the caller leaves, if he may
    std::stop_token cancel;      // the same
    bool may_leave = false;      // false: the helper works on the caller's own memory
    Clock::time_point given_up;  // from then on the helper counts as hung
    StagingMemory::Block block;
  };

  std::uint64_t add(Terms terms);
  // Blocks. Every call that was added is awaited once.
  CallResult wait(std::uint64_t call);

  bool is_done(std::uint64_t call) const;

  // False when the answer does not fit its call, which only a broken helper sends. Answers to calls
  // that are not there are let go.
  bool answer(std::uint64_t call, std::vector<wire::Answer> answers);
  // The helper is gone: no call is answered any more.
  void lose_all();
  // The helper answers no more, but may still work on what it was lent: callers who may leave do so
  // now, as if they had lost it; their blocks stay with the calls.
  void let_leave();
  // Of a call that nobody waits for, because the helper was not asked.
  void forget(std::uint64_t call);

  // When the first call counts as hung.
  std::optional<Clock::time_point> first_given_up() const;
  std::size_t size() const;

 private:
  struct Call {
    Terms terms;
    bool done = false;
    bool awaited = true;    // false: the caller has left
    bool released = false;  // he is to leave
    CallEnd end = CallEnd::lost;
    std::vector<wire::Answer> answers;
    std::condition_variable_any changed;
  };
  void finish(Call& call, CallEnd end);

  mutable std::mutex mutex_;
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, std::shared_ptr<Call>> calls_;
};

}  // namespace vitrove::mooncake
