#include "cache/lane.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace vitrove {
namespace {

// What an overdue call gets to notice that it is asked to stop.
constexpr std::chrono::milliseconds stop_grace{200};

}  // namespace

struct Lane::State {
  State(std::uint32_t threads, std::size_t max) : max_queued(max), running(threads) {}

  const std::size_t max_queued;
  std::stop_source shutdown;
  mutable std::mutex mutex;
  std::condition_variable work;
  std::condition_variable idle;  // something ended
  std::deque<std::shared_ptr<LaneCall>> queue;
  std::vector<std::shared_ptr<LaneCall>> running;  // by worker
  std::size_t active = 0;  // workers between taking a call and having freed all it owned
  std::size_t threads_alive = 0;
  std::vector<bool> ended;
  bool stopping = false;

  bool all_stuck(Clock::time_point now) const {
    return std::ranges::all_of(
        running, [&](const auto& call) { return call != nullptr && call->is_overdue(now); });
  }
  bool is_idle() const { return queue.empty() && active == 0; }

  // When the last of the running calls should be back.
  Clock::time_point last_deadline() const {
    auto last = Clock::time_point::min();
    for (const auto& call : running) {
      if (call != nullptr) last = std::max(last, call->deadline());
    }
    return last;
  }
};

Lane::Lane(std::uint32_t threads, std::size_t max_queued)
    : state_(std::make_shared<State>(std::max(1U, threads), max_queued)) {
  const std::size_t count = state_->running.size();
  state_->ended.resize(count);
  state_->threads_alive = count;
  try {
    for (std::size_t worker = 0; worker < count; ++worker) {
      threads_.emplace_back([state = state_, worker] { work(state, worker); });
    }
  } catch (...) {
    {
      std::lock_guard lock(state_->mutex);
      state_->stopping = true;
    }
    state_->work.notify_all();
    for (std::thread& thread : threads_) thread.join();
    throw;
  }
}

Lane::~Lane() { shut_down(Clock::now()); }

void Lane::work(const std::shared_ptr<State>& state, std::size_t worker) {
  std::unique_lock lock(state->mutex);
  for (;;) {
    state->work.wait(lock, [&] { return state->stopping || !state->queue.empty(); });
    if (state->stopping) break;
    std::shared_ptr<LaneCall> call = std::move(state->queue.front());
    state->queue.pop_front();
    state->running[worker] = call;
    ++state->active;
    lock.unlock();
    call->run(state->shutdown.get_token());
    lock.lock();
    state->running[worker].reset();
    // What the call owned may take other locks on its way back.
    lock.unlock();
    call.reset();
    lock.lock();
    --state->active;
    state->idle.notify_all();
  }
  state->ended[worker] = true;
  --state->threads_alive;
  state->idle.notify_all();
}

Lane::Submitted Lane::submit(std::shared_ptr<LaneCall> call) {
  {
    std::lock_guard lock(state_->mutex);
    if (state_->stopping || state_->all_stuck(Clock::now())) return Submitted::stuck;
    if (state_->queue.size() >= state_->max_queued) return Submitted::full;
    state_->queue.push_back(std::move(call));
  }
  state_->work.notify_one();
  return Submitted::yes;
}

bool Lane::withdraw(const std::shared_ptr<LaneCall>& call) {
  std::lock_guard lock(state_->mutex);
  const bool was_queued = std::erase(state_->queue, call) > 0;
  if (was_queued) state_->idle.notify_all();
  return was_queued;
}

Lane::Load Lane::load(Clock::time_point now) const {
  std::lock_guard lock(state_->mutex);
  Load load;
  load.queued = state_->queue.size();
  for (const auto& call : state_->running) {
    if (call == nullptr) continue;
    ++load.running;
    if (call->is_overdue(now)) load.quarantined_bytes += call->bytes_held();
  }
  return load;
}

bool Lane::wait_idle(Clock::time_point deadline) {
  std::unique_lock lock(state_->mutex);
  return state_->idle.wait_until(lock, deadline, [this] { return state_->is_idle(); });
}

bool Lane::shut_down(Clock::time_point bound) {
  if (threads_.empty()) return true;
  std::deque<std::shared_ptr<LaneCall>> never_run;
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  never_run.swap(state_->queue);
  bound = std::min(bound, std::max(state_->last_deadline(), Clock::now() + stop_grace));
  lock.unlock();
  state_->work.notify_all();
  state_->shutdown.request_stop();
  for (const auto& call : never_run) call->dropped();

  lock.lock();
  // A thread between two calls ends by itself; only a call can hold it up.
  const auto over = [this] { return state_->threads_alive == 0; };
  const bool all_ended = state_->idle.wait_until(lock, bound, over);
  const std::vector<bool> ended = state_->ended;
  lock.unlock();
  for (std::size_t worker = 0; worker < threads_.size(); ++worker) {
    if (ended[worker]) {
      threads_[worker].join();
    } else {
      threads_[worker].detach();
    }
  }
  threads_.clear();
  return all_ended;
}

}  // namespace vitrove
