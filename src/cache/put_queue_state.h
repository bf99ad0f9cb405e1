// What a PutQueue shares with its calls and fences, which may outlive it.
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>

#include "cache/put_pipeline.h"
#include "vitrove/small_vector.h"

namespace vitrove {

struct PutQueue::Job {
  std::shared_ptr<PutValue> value;
  std::uint64_t bytes = 0;
  // Once it is revoked while it runs: around what it takes back. Guarded by the mutex.
  std::shared_ptr<Fence> revoked;
  ClaimHold claim;
  Clock::time_point due;  // while it waits
  // It came, or was there, while a delete was under way that may have failed: what that was to take
  // makes way.
  bool was_fenced = false;
  bool was_sent = false;  // and may be in the store: by its call alone
};

struct PutQueue::State {
  State(std::shared_ptr<CacheCore> shared_core, std::shared_ptr<Tier> shared_tier,
        const Options& given)
      : core(std::move(shared_core)), tier(std::move(shared_tier)), options(given) {}

  const std::shared_ptr<CacheCore> core;
  const std::shared_ptr<Tier> tier;
  const Options options;

  mutable std::mutex mutex;
  PutQueue* owner = nullptr;          // while it lives
  std::condition_variable ended;      // a running job did, or a fence
  std::condition_variable_any waits;  // a job does, the first or one too many
  Jobs waiting;                       // in order of their due times
  std::uint64_t waiting_bytes = 0;
  Jobs queued;
  int gathering = 0;     // how many do
  bool is_owed = false;  // a call for what was queued meanwhile
  Jobs running;
  std::uint64_t queued_bytes = 0;
  std::uint64_t dropped = 0;
  std::uint64_t skipped = 0;

  static constexpr std::uint64_t put_batch_bytes = std::uint64_t{8} << 20;
  static constexpr std::size_t put_batch_keys = 16;
  using Batch = SmallVector<Jobs::iterator, put_batch_keys>;  // no heap: nobody may throw here

  Batch take_batch() {
    std::lock_guard lock(mutex);
    Batch batch;
    std::uint64_t bytes = 0;
    for (auto job = queued.begin(); job != queued.end();) {
      const auto next = std::next(job);
      if (!is_fenced(*job->value)) {
        bytes += job->bytes;
        queued_bytes -= job->bytes;
        job->claim.resume_renewals();
        running.splice(running.end(), queued, job);
        batch.push_back(job);
        if (batch.size() == put_batch_keys || bytes >= put_batch_bytes) break;
      }
      job = next;
    }
    return batch;
  }

  // Ends the jobs of a batch, but for those that were revoked after they were sent: these are to be
  // taken back, and are finished then. Whoever revokes a job either finds it here, or comes when it
  // has ended: there is no moment in between.
  Batch finish(const Batch& batch) {
    Jobs over;  // what jobs own takes other locks on its way back
    Batch left;
    std::lock_guard lock(mutex);
    for (const auto job : batch) {
      if (job->revoked != nullptr && std::exchange(job->was_sent, false)) {
        left.push_back(job);
      } else {
        over.splice(over.end(), running, job);
      }
    }
    ended.notify_all();
    return left;
  }

  bool is_revoked(Jobs::iterator job) const {
    std::lock_guard lock(mutex);
    return job->revoked != nullptr;
  }
  void count_dropped(std::uint64_t jobs) {
    std::lock_guard lock(mutex);
    dropped += jobs;
  }
  void count_skipped() {
    std::lock_guard lock(mutex);
    ++skipped;
  }

  // The following are called under the mutex.
  void queue(Jobs& first_of) {
    queued.splice(queued.end(), first_of, first_of.begin());
    queued_bytes += queued.back().bytes;
    if (meet_fences(queued.back())) queued.back().claim.pause_renewals();
  }
  // After a fence was raised: what waits behind it may wait for long.
  void meet_fences() {
    for (Job& job : waiting) meet_fences(job);
    for (Job& job : queued) {
      if (meet_fences(job) && job.claim) job.claim.pause_renewals();
    }
  }
  // Whether it is to wait now.
  bool meet_fences(Job& job) const {
    const bool is_held = is_fenced(*job.value);
    job.was_fenced = job.was_fenced || is_held;
    return is_held;
  }
  bool is_fenced(const PutValue& value) const {
    return tier->deletions().cover(value.header.key, value.header.model_fingerprint);
  }
  bool fits(std::uint64_t bytes) const {
    const bool is_empty = queued.empty() && waiting.empty();
    return is_empty || queued_bytes + waiting_bytes + bytes <= options.max_bytes;
  }
  bool too_many_wait() const { return waiting_bytes > options.max_bytes / 2; }

  // Whether encoding it anew costs less than this store takes to give it back. One in 32 goes there
  // all the same: without gets nobody would learn that the store has become faster. An alias shares
  // the fate of what it points to.
  bool is_not_worth_it(const PutValue& value) const {
    if (!options.skip_cheap || tier->capabilities().is_local) return false;
    constexpr auto sampled = std::byte{8};
    if (value.stored_under.digest.bytes.front() < sampled) return false;
    const auto fetch = tier->fetch_costs().expected(value.stored_bytes);
    return fetch && FetchCosts::Duration(static_cast<double>(value.header.encode_cost_us)) < *fetch;
  }
};

class PutQueue::Fence {
 public:
  Fence(std::shared_ptr<State> state, const Deletion& deletion)
      : state_(std::move(state)), place_(state_->tier->deletions().raise(deletion)) {}
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;
  ~Fence() {
    Jobs given_up;  // freed after the lock
    std::lock_guard lock(state_->mutex);
    state_->tier->deletions().lower(place_);
    if (state_->owner != nullptr && !state_->queued.empty()) {
      given_up = state_->owner->send_or_owe();
    }
    state_->ended.notify_all();
  }

 private:
  const std::shared_ptr<State> state_;
  const DeleteFences::Place place_;
};

inline std::shared_ptr<PutQueue::Fence> PutQueue::make_fence(const std::shared_ptr<State>& state,
                                                             const Deletion& deletion) {
  auto fence = make_fence_locked(state, deletion);
  std::lock_guard lock(state->mutex);
  state->meet_fences();
  return fence;
}

inline std::shared_ptr<PutQueue::Fence> PutQueue::make_fence_locked(
    const std::shared_ptr<State>& state, const Deletion& deletion) {
  return std::make_shared<Fence>(state, deletion);
}

}  // namespace vitrove
