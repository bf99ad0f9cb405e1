// RankBoard: the requests of one rank, and what is known of each. All ways to them lead through one
// mutex: requests come at the pace of an encoder, not of a lookup.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "ranks/rank_message.h"
#include "vitrove/rank_agreement.h"

namespace vitrove {

// Items, id and digest stay as they are once a loader has the request; the rest is guarded by the
// board's mutex.
struct RankRequest {
  std::string id;
  std::vector<ValueExpectation> items;  // none where this rank need not know them
  Digest256 digest;
  std::uint64_t sequence = 0;  // 0: rank 0 has not taken it on yet
  bool wanted = false;         // this rank's host has asked for it
  bool abandoned = false;      // and lost interest
  bool refused = false;
  bool looked = false;   // rank 0 has looked
  bool planned = false;  // the mask is told
  bool loaded = false;
  bool closed = false;   // what loads now comes too late
  bool decided = false;  // the outcome is told
  bool aborted = false;  // by rank 0
  std::vector<bool> mask;
  std::vector<bool> hits;
  std::vector<EmbeddingView> views;
  std::chrono::steady_clock::time_point since;     // asked for, then planned
  std::chrono::steady_clock::time_point deadline;  // of its loads
  std::stop_source cancel;
};
using RankRequestPtr = std::shared_ptr<RankRequest>;

class RankBoard {
 public:
  using Clock = std::chrono::steady_clock;

  // `leads`: of rank 0. `patience`: how long a host waits for word of a request.
  RankBoard(bool leads, std::chrono::milliseconds load_timeout, std::chrono::milliseconds patience)
      : leads_(leads), load_timeout_(load_timeout), patience_(patience) {}

  // --- of hosts; they throw Error as rank_agreement.h says ---

  // On rank 0: numbers the request.
  RankRequestPtr take_on(const std::string& id, std::vector<ValueExpectation> items, bool refused);
  // Elsewhere: meets what rank 0 has said of it, or will say.
  void ask(const std::string& id, std::vector<ValueExpectation> items);
  bool abandon(const std::string& id);
  // Nothing: nobody asked. Else whether the outcome is there.
  std::optional<bool> progress(const std::string& id);
  std::optional<std::vector<bool>> mask(const std::string& id) const;
  RankOutcome take(const std::string& id);
  RankOutcome wait(const std::string& id);

  // --- of rank 0's sequencer ---

  enum class Step : std::uint8_t { plan, decide, beat, stop };
  struct Task {
    Step step = Step::stop;
    RankRequestPtr request;
  };
  // Blocks until there is something to say, or it is time for a beat. Throws when the group failed.
  Task next(Clock::time_point beat);

  // --- of any sequencer ---

  PlanMessage plan(const RankRequestPtr& request, bool with_items);
  // Nothing when there is nothing to load.
  RankRequestPtr heard_plan(std::uint64_t sequence, PlanMessage plan, bool will_load);
  RankRequestPtr by_sequence(std::uint64_t sequence) const;  // throws Error{internal}
  // Ends the loading; what this rank has of each item, 1 or 0. Waits for loads until the deadline.
  std::vector<std::int64_t> await_votes(const RankRequestPtr& request, bool aborted);
  std::vector<std::int64_t> close(const RankRequestPtr& request, bool& aborted);
  void decide(const RankRequestPtr& request, std::vector<bool> hits, bool aborted);

  // --- of loaders ---

  RequestContext context_of(const RankRequestPtr& request) const;
  // False when it is too late.
  bool looked(const RankRequestPtr& request, std::vector<RankSource::Found> found);
  // The places of items that are hoped for and not there yet.
  std::vector<std::size_t> missing(const RankRequestPtr& request) const;
  void loaded(const RankRequestPtr& request, std::span<const std::size_t> places,
              std::vector<EmbeddingView> views);

  // --- the end ---

  // True for the first reason, which stays.
  bool fail(const std::string& reason);
  std::optional<std::string> failure() const;
  void stop();
  bool stopping() const;

 private:
  void throw_if_failed() const;
  RankRequestPtr find_wanted(const std::string& id) const;
  bool hopeless(const RankRequest& request) const;
  bool waits_for_its_turn(const RankRequestPtr& request) const;
  RankOutcome taken(const RankRequestPtr& request);
  void trim();
  static std::vector<std::int64_t> close_locked(RankRequest& request, bool aborted);

  const bool leads_;
  const std::chrono::milliseconds load_timeout_;
  const std::chrono::milliseconds patience_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<RankRequestPtr> requests_;  // in the order they came
  std::uint64_t last_sequence_ = 0;
  std::optional<std::string> failure_;
  bool stopping_ = false;
};

}  // namespace vitrove
