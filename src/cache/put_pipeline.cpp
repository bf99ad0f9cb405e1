#include "cache/put_pipeline.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cache/put_queue_state.h"

namespace vitrove {

// One store call, or two when some keys are to be replaced.
class PutQueue::Call final : public LaneCall {
 public:
  explicit Call(std::shared_ptr<State> state) : state_(std::move(state)) {}

  void run(const std::stop_token& shutdown) noexcept override {
    // Nothing is left when an earlier call took it along; more than a batch, when it was gathered.
    for (auto batch = state_->take_batch(); !batch.empty(); batch = state_->take_batch()) {
      try {
        put(batch, shutdown);
      } catch (...) {  // out of memory
        state_->count_dropped(batch.size());
      }
      set_deadline(Clock::now() + state_->options.timeout);  // back, whoever asks now
      for (auto left = state_->finish(batch); !left.empty(); left = state_->finish(left)) {
        take_back(left, shutdown);
        set_deadline(Clock::now() + state_->options.timeout);
      }
    }
  }

 private:
  using JobPlace = Jobs::iterator;

  // What lies in the arena for one value, while the store reads it.
  struct Outgoing {
    JobPlace job;
    std::optional<PagePool::HeaderSlot> header;
    std::optional<PagePool::HeaderSlot> side_slot;
    std::optional<PagePool::Staging> side_staging;
    std::vector<ConstBuffer> buffers;
  };

  void put(const State::Batch& batch, const std::stop_token& shutdown) {
    const bool admitted =
        state_->tier->admit(Tier::Direction::writes) != Breaker::Admission::refused;
    StoreContext context;
    context.deadline = Clock::now() + state_->options.timeout;
    context.cancel = shutdown;
    std::vector<Outgoing> fresh;
    std::vector<Outgoing> replacing;
    std::uint64_t held = 0;
    std::uint64_t dropped = 0;
    for (const JobPlace job : batch) {
      if (state_->is_revoked(job)) continue;
      if (state_->is_not_worth_it(*job->value)) {
        state_->count_skipped();
        continue;
      }
      auto outgoing = admitted ? load(job) : std::nullopt;
      if (!outgoing) {
        ++dropped;
        continue;
      }
      held += job->bytes;
      const bool replaces = job->was_fenced || state_->tier->is_bad(job->value->header.key);
      auto& list = replaces ? replacing : fresh;
      list.push_back(std::move(*outgoing));
    }
    state_->count_dropped(dropped);
    set_bytes_held(held);
    set_deadline(context.deadline);
    send(fresh, PutMode::if_absent, context);
    send(replacing, PutMode::replace, context);
  }

  std::optional<Outgoing> load(JobPlace job) {
    PagePool& pool = state_->core->pool();
    PutValue& value = *job->value;
    Outgoing outgoing{job, {}, {}, {}, {}};
    if (value.staged_bytes > 0) {
      outgoing.buffers.push_back(value.staging.bytes().first(value.staged_bytes));
      return outgoing;
    }
    outgoing.header = pool.borrow_header_slot();
    if (!outgoing.header) return std::nullopt;
    std::ranges::copy(encode_header(value.header), outgoing.header->bytes().begin());
    outgoing.buffers.push_back(outgoing.header->bytes());
    if (value.entry) {
      for (const auto& segment : value.entry->details->pages.segments) {
        outgoing.buffers.push_back(std::as_const(pool).segment_bytes(segment));
      }
    }
    const auto& side = value.entry ? value.entry->details->side.bytes : value.side;
    if (!add_side(outgoing, side)) return std::nullopt;
    return outgoing;
  }

  // A header slot holds what most media have for side data.
  bool add_side(Outgoing& outgoing, std::span<const std::byte> side) {
    if (side.empty()) return true;
    PagePool& pool = state_->core->pool();
    std::span<std::byte> room;
    if (side.size() <= PagePool::header_slot_bytes) outgoing.side_slot = pool.borrow_header_slot();
    if (outgoing.side_slot) {
      room = outgoing.side_slot->bytes();
    } else {
      outgoing.side_staging = pool.borrow_staging(side.size());
      if (!outgoing.side_staging) return false;
      room = outgoing.side_staging->bytes();
    }
    std::ranges::copy(side, room.begin());
    outgoing.buffers.push_back(room.first(side.size()));
    return true;
  }

  void send(std::vector<Outgoing>& values, PutMode mode, const StoreContext& context) {
    Tier& tier = *state_->tier;
    const StoreCapabilities can = tier.capabilities();
    const std::uint64_t limit = can.max_value_bytes;
    const auto too_large =
        std::erase_if(values, [&](const Outgoing& value) { return value.job->bytes > limit; });
    tier.skipped_too_large(too_large, limit);
    const bool renews = mode == PutMode::replace;
    std::vector<std::shared_ptr<Fence>> fences;
    if (renews && !can.can_replace) {
      for (const Outgoing& value : values) {
        fences.push_back(make_fence(state_, {value.job->value->header.key, std::nullopt}));
      }
      make_way(values, can, context);
      mode = PutMode::if_absent;
    }
    if (values.empty()) return;

    std::vector<EmbeddingKey> keys;
    std::vector<ConstBufferList> lists;
    for (const Outgoing& value : values) {
      keys.push_back(value.job->value->header.key);
      lists.emplace_back(value.buffers);
    }
    for (const Outgoing& value : values) value.job->was_sent = true;
    const auto start = Clock::now();
    const auto results = tier.put(keys, lists, mode, context);
    note(values, results, renews, Clock::now() - start);
  }

  // For a backend that cannot replace. A put over a bad value that is still there would be told
  // that all is well, and each later lookup would read and reject it again: such a key is skipped,
  // and neither read nor written for a while.
  void make_way(std::vector<Outgoing>& values, const StoreCapabilities& can,
                const StoreContext& context) {
    std::vector<EmbeddingKey> keys;
    keys.reserve(values.size());
    for (const Outgoing& value : values) keys.push_back(value.job->value->header.key);
    std::vector<StoreResult> gone(keys.size(), {StoreStatus::unsupported});
    if (can.can_remove) {
      const auto start = Clock::now();
      gone = state_->tier->remove(keys, context);
      state_->tier->removes().record(gone, 0, Clock::now() - start);
    }
    std::size_t at = 0;
    const auto skipped = std::erase_if(values, [&](const Outgoing&) {
      const StoreResult& result = gone[at++];
      return !result.ok() && result.status != StoreStatus::absent;
    });
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (gone[i].ok() || gone[i].status == StoreStatus::absent) continue;
      state_->tier->mark_bad(keys[i], Tier::Bad::not_believed);
    }
    state_->count_dropped(skipped);
  }

  // A put that does not replace is told that all is well also where a bad value stays.
  void note(const std::vector<Outgoing>& values, std::span<const StoreResult> results, bool renews,
            Clock::duration took) {
    Tier& tier = *state_->tier;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!results[i].ok()) continue;
      bytes += values[i].job->bytes;
      if (renews) tier.mark_renewed(values[i].job->value->header.key);
      values[i].job->claim.was_stored();
    }
    tier.puts().record(results, bytes, took);
    tier.report(Tier::Direction::writes, Tier::is_fault(results));
  }

  void take_back(const State::Batch& jobs, const std::stop_token& shutdown) noexcept {
    try {
      take_back_keys(jobs, shutdown);
    } catch (...) {  // out of memory
    }
  }

  void take_back_keys(const State::Batch& jobs, const std::stop_token& shutdown) {
    std::vector<EmbeddingKey> revoked;
    for (const JobPlace job : jobs) revoked.push_back(job->value->header.key);
    StoreContext removal;
    removal.deadline = Clock::now() + state_->options.timeout;
    removal.cancel = shutdown;
    set_deadline(removal.deadline);
    const auto start = Clock::now();
    const auto results = state_->tier->remove(revoked, removal);
    state_->tier->removes().record(results, 0, Clock::now() - start);
    for (std::size_t i = 0; i < revoked.size(); ++i) {
      if (results[i].ok() || results[i].status == StoreStatus::absent) continue;
      state_->tier->mark_bad(revoked[i], Tier::Bad::not_believed);
    }
  }

  const std::shared_ptr<State> state_;
};

PutQueue::PutQueue(std::shared_ptr<CacheCore> core, std::shared_ptr<Tier> tier,
                   const Options& options)
    : state_(std::make_shared<State>(std::move(core), std::move(tier), options)),
      lane_(options.threads, std::numeric_limits<std::size_t>::max()) {
  state_->owner = this;
  if (options.delay.count() > 0) {
    delayer_ = std::jthread([this](const std::stop_token& stop) { delay(stop); });
  }
}

PutQueue::~PutQueue() {
  std::lock_guard lock(state_->mutex);
  state_->owner = nullptr;
}

void PutQueue::add(std::shared_ptr<PutValue> value, ClaimHold claim) {
  const std::uint64_t bytes = value->header.value_bytes();
  Jobs one;
  one.push_back({std::move(value), bytes, nullptr, std::move(claim), {}});
  Jobs given_up;  // freed after the lock
  std::lock_guard lock(state_->mutex);
  if (!state_->fits(bytes)) {
    ++state_->dropped;
    return;
  }
  // Staging is for what passes through: with what waits in it, nothing could be read any more.
  if (delayer_.joinable() && one.front().value->staged_bytes == 0) {
    state_->meet_fences(one.front());
    one.front().due = Clock::now() + state_->options.delay;
    state_->waiting_bytes += bytes;
    state_->waiting.splice(state_->waiting.end(), one);
    state_->waits.notify_all();
    return;
  }
  state_->queue(one);
  given_up = send_or_owe();
}

PutQueue::Jobs PutQueue::send_or_owe() noexcept {
  if (state_->gathering == 0) return send_queued();
  state_->is_owed = true;
  return {};
}

// When every thread is stuck, what waits would only keep pages pinned.
PutQueue::Jobs PutQueue::send_queued() noexcept {
  state_->is_owed = false;
  Jobs given_up;
  if (submit_call()) return given_up;
  given_up.swap(state_->queued);
  state_->queued_bytes = 0;
  state_->dropped += given_up.size();
  return given_up;
}

void PutQueue::begin_gathering() {
  std::lock_guard lock(state_->mutex);
  ++state_->gathering;
}

// Others may still gather: what they have queued so far goes along, lest all wait for a moment in
// which nobody does.
void PutQueue::end_gathering() noexcept {
  {
    std::lock_guard lock(state_->mutex);
    --state_->gathering;
  }
  send_owed();
}

void PutQueue::send_owed() noexcept {
  Jobs given_up;  // freed after the lock
  std::lock_guard lock(state_->mutex);
  if (state_->is_owed) given_up = send_queued();
}

bool PutQueue::submit_call() noexcept {
  try {
    return lane_.submit(std::make_shared<Call>(state_)) == Lane::Submitted::yes;
  } catch (...) {  // out of memory
    return false;
  }
}

template <typename Enough>
void PutQueue::send_waiting(Enough enough) {
  Jobs given_up;  // freed after the lock
  std::lock_guard lock(state_->mutex);
  while (!state_->waiting.empty() && !enough()) {
    state_->waiting_bytes -= state_->waiting.front().bytes;
    state_->queue(state_->waiting);
    given_up.splice(given_up.end(), send_queued());
  }
}

void PutQueue::delay(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(state_->mutex);
      const auto any = [this] { return !state_->waiting.empty(); };
      if (!state_->waits.wait(lock, stop, any)) return;
      // A copy: the wait looks at it while others may move the jobs.
      const Clock::time_point due = state_->waiting.front().due;
      state_->waits.wait_until(
          lock, stop, due, [this] { return state_->waiting.empty() || state_->too_many_wait(); });
    }
    if (stop.stop_requested()) return;
    try {
      send_waiting([this] {
        return state_->waiting.front().due > Clock::now() && !state_->too_many_wait();
      });
    } catch (...) {  // out of memory: the one that was on its way is lost
      state_->count_dropped(1);
    }
  }
}

bool PutQueue::wait_idle(Clock::time_point deadline) {
  send_waiting([] { return false; });
  send_owed();
  {
    std::unique_lock lock(state_->mutex);
    const auto none = [this] { return state_->tier->deletions().empty(); };
    if (!state_->ended.wait_until(lock, deadline, none)) return false;
  }
  return lane_.wait_idle(deadline);
}

bool PutQueue::shut_down(Clock::time_point bound) {
  delayer_ = {};
  Jobs never_sent;  // freed after the lock
  {
    std::lock_guard lock(state_->mutex);
    never_sent.splice(never_sent.end(), state_->waiting);
    state_->waiting_bytes = 0;
    never_sent.splice(never_sent.end(), state_->queued);
    state_->queued_bytes = 0;
  }
  return lane_.shut_down(bound);
}

void PutQueue::revoke(const std::function<bool(const PutValue&)>& which) {
  Jobs forgotten;
  const auto forget = [&](Jobs& jobs, std::uint64_t& bytes) {
    for (auto job = jobs.begin(); job != jobs.end();) {
      const auto next = std::next(job);
      if (which(*job->value)) {
        bytes -= job->bytes;
        forgotten.splice(forgotten.end(), jobs, job);
      }
      job = next;
    }
  };
  std::lock_guard lock(state_->mutex);
  for (Job& job : state_->running) {
    if (job.revoked || !which(*job.value)) continue;
    job.revoked = make_fence_locked(state_, {job.value->header.key, std::nullopt});
  }
  forget(state_->waiting, state_->waiting_bytes);
  forget(state_->queued, state_->queued_bytes);
  state_->meet_fences();
}

std::shared_ptr<PutQueue::Fence> PutQueue::fence(const Deletion& deletion) {
  return make_fence(state_, deletion);
}

bool PutQueue::wait_gone(const std::function<bool(const PutValue&)>& which,
                         Clock::time_point deadline) {
  std::unique_lock lock(state_->mutex);
  return state_->ended.wait_until(lock, deadline, [&] {
    return std::ranges::none_of(state_->running, [&](const Job& job) { return which(*job.value); });
  });
}

std::uint64_t PutQueue::pending() const {
  std::lock_guard lock(state_->mutex);
  return state_->waiting.size() + state_->queued.size() + state_->running.size();
}

std::uint64_t PutQueue::skipped() const {
  std::lock_guard lock(state_->mutex);
  return state_->skipped;
}

std::uint64_t PutQueue::dropped() const {
  std::lock_guard lock(state_->mutex);
  return state_->dropped;
}

}  // namespace vitrove
