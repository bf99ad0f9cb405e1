// PutPipeline: puts to the stores, behind the back of whoever published.
//
// A value waits and travels without a copy: its entry stays pinned, and the call gathers a header
// slot, the entry's pages, and a slot (or staging) with its side data. Values that have no pages
// (aliases, uncached embeddings) go through staging. Each tier has a queue bounded in bytes; what
// does not fit is dropped, newest first, and counted. Small values travel several in one store
// call. With a delay (write-behind) a value waits for so long before it is queued, unless what
// waits exceeds half of the bound: then the oldest goes.
//
// Revoking: a flush or a removal revokes what is queued or under way. A queued job is forgotten;
// one under way is looked at again in the moment it ends, and is first removed from the store where
// it slipped through (field case B76): of a store that cannot list nobody would find it any more.
// Jobs are queued under the lock of their key's shard (flight_board.h), so that who revokes after
// having held that lock misses none.
//
// Fences: while a delete is under way, what is put of its keys waits in the queue until the store
// has answered (delete_fences.h). That holds for a flush or removal, whose caller may be gone by
// then, and for what a put that was revoked takes back itself. What waits counts as queued; behind
// a delete that never returns it waits for ever, and what no longer fits is dropped. The claim of
// what waits is not renewed meanwhile: others wait for it for one ttl at the most, and then encode.
// Once it is sent it is a put like any other: while puts to its store pause (breaker.h) it is
// dropped and counted, as all are. Nothing old is left in its place to be believed: what a delete
// has failed to take was marked by whoever made the delete (Tier::mark_bad), and makes way for the
// next put, whichever that is.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "cache/cache_core.h"
#include "cache/claim_keeper.h"
#include "cache/lane.h"
#include "cache/put_value.h"
#include "cache/tier.h"

namespace vitrove {

class PutQueue {
 public:
  using Clock = LaneCall::Clock;

  struct Options {
    std::uint32_t threads = 2;
    std::uint64_t max_bytes = 0;
    std::chrono::microseconds timeout{0};
    std::chrono::microseconds delay{0};
    bool skip_cheap = false;  // what is cheaper to encode than to fetch, when the store is far
  };

  PutQueue(std::shared_ptr<CacheCore> core, std::shared_ptr<Tier> tier, const Options& options);
  ~PutQueue();

  // `claim`: of this value in this tier, if there is one; it is let go when the put has ended.
  void add(std::shared_ptr<PutValue> value, ClaimHold claim = {});

  // While somebody gathers, what is added is queued and not sent; he then sends all there is, by
  // one call and one waking of a thread. For moments.
  class Gathering {
   public:
    explicit Gathering(PutQueue& queue) : queue_(&queue) { queue.begin_gathering(); }
    Gathering(Gathering&& other) noexcept : queue_(std::exchange(other.queue_, nullptr)) {}
    Gathering& operator=(Gathering&&) = delete;
    ~Gathering() {
      if (queue_ != nullptr) queue_->end_gathering();
    }

   private:
    PutQueue* queue_;
  };
  void revoke(const std::function<bool(const PutValue&)>& which);

  // Stands until it is destroyed, on any thread and after the queue too. Then what waited is sent.
  class Fence;
  std::shared_ptr<Fence> fence(const Deletion& deletion);

  // True when no job that `which` names is under way any more.
  bool wait_gone(const std::function<bool(const PutValue&)>& which, Clock::time_point deadline);
  // Nothing waits any longer, for a fence neither.
  bool wait_idle(Clock::time_point deadline);
  // Drops what waits. True when no call is left behind.
  bool shut_down(Clock::time_point bound);

  Lane& lane() { return lane_; }
  std::uint64_t pending() const;
  std::uint64_t dropped() const;
  std::uint64_t skipped() const;

 private:
  struct State;
  struct Job;
  using Jobs = std::list<Job>;
  class Call;
  static std::shared_ptr<Fence> make_fence(const std::shared_ptr<State>& state,
                                           const Deletion& deletion);
  static std::shared_ptr<Fence> make_fence_locked(const std::shared_ptr<State>& state,
                                                  const Deletion& deletion);
  bool submit_call() noexcept;
  // Under the mutex. What was queued in vain, to be freed after it.
  Jobs send_queued() noexcept;
  Jobs send_or_owe() noexcept;
  void begin_gathering();
  void end_gathering() noexcept;
  void send_owed() noexcept;
  // The oldest that wait go to the lane, until `enough()`, which is asked under the mutex.
  template <typename Enough>
  void send_waiting(Enough enough);
  void delay(const std::stop_token& stop);

  const std::shared_ptr<State> state_;
  Lane lane_;
  std::jthread delayer_;  // with a delay only; last: ends before the lane
};

}  // namespace vitrove
