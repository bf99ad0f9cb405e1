#include "cache/claim_keeper.h"

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include "base/stoppable_wait.h"

namespace vitrove {
namespace {

using Clock = LaneCall::Clock;

// What releases get in all when the controller ends; the ttl does the rest.
constexpr std::chrono::milliseconds last_words{200};
// How many may wait for being released; the ttl ends the older ones.
constexpr std::size_t most_releasing = 4096;
// What part of its ttl the claim of a stored value may outlive its put. Nobody misses it, since who
// looks finds the value; and so one waking of the thread releases many.
constexpr int linger_part = 100;

}  // namespace

struct ClaimState {
  struct Held {
    std::uint64_t id = 0;
    std::shared_ptr<const ClaimKeeper::Claimed> claimed;  // shared with the call that renews it
    Clock::time_point next_renewal;
    Clock::time_point valid_until;  // as far as we have been told
    Clock::time_point ripe;         // while it lingers
    ClaimOutcome outcome = ClaimOutcome::not_stored;
  };
  using List = std::list<Held>;

  ClaimState(std::chrono::milliseconds claim_ttl, std::chrono::microseconds call_timeout)
      : ttl(std::max(claim_ttl, std::chrono::milliseconds(1))), timeout(call_timeout) {}

  const std::chrono::milliseconds ttl;
  const std::chrono::microseconds timeout;

  std::mutex mutex;
  std::condition_variable_any changed;
  std::uint64_t last_id = 0;
  std::uint64_t lost = 0;
  std::uint64_t unreleased = 0;
  int hurried = 0;  // how many wait until all is idle
  List held;
  List lingering;  // let go, of values that are stored; in order of `ripe`
  List releasing;
  List calling;  // the one that the store is asked about just now

  Clock::duration renewal_interval() const { return Clock::duration(ttl) / 3; }

  // The following are called under the mutex.
  List::iterator due(Clock::time_point now) {
    return std::ranges::find_if(held, [&](const Held& one) { return one.next_renewal <= now; });
  }
  Clock::time_point next_due() const {
    auto next = Clock::time_point::max();
    for (const Held& one : held) next = std::min(next, one.next_renewal);
    return next;
  }
  // When there is something to do, unless somebody says so before.
  Clock::time_point next_task() const {
    return lingering.empty() ? next_due() : std::min(next_due(), lingering.front().ripe);
  }
  bool has_task() const { return !releasing.empty() || (hurried > 0 && !lingering.empty()); }
  // True when the thread has to hear of it: it may sleep for longer than that.
  bool let_go(List::iterator one, ClaimOutcome outcome) {
    one->outcome = outcome;
    if (outcome != ClaimOutcome::stored) {
      release(held, one);
      return true;
    }
    one->ripe = Clock::now() + Clock::duration(ttl) / linger_part;
    lingering.splice(lingering.end(), held, one);
    return lingering.size() == 1 || hurried > 0;
  }
  void release_ripe(Clock::time_point now) {
    while (!lingering.empty() && (hurried > 0 || lingering.front().ripe <= now)) {
      release(lingering, lingering.begin());
    }
  }
  // More are let go than a slow store takes back: the oldest are forgotten.
  void release(List& from, List::iterator one) {
    releasing.splice(releasing.end(), from, one);
    if (releasing.size() <= most_releasing) return;
    releasing.pop_front();
    ++unreleased;
  }
  void forget_expired(Clock::time_point now) {
    unreleased += std::erase_if(releasing, [&](const Held& one) { return one.valid_until <= now; });
  }
  bool is_idle() const {
    return held.empty() && lingering.empty() && releasing.empty() && calling.empty();
  }
};

ClaimHold& ClaimHold::operator=(ClaimHold&& other) noexcept {
  if (this != &other) {
    let_go();
    state_ = std::move(other.state_);
    id_ = other.id_;
    tier_ = other.tier_;
    is_paused_ = other.is_paused_;
    outcome_ = other.outcome_;
  }
  return *this;
}

void ClaimHold::let_go() noexcept {
  const auto state = std::exchange(state_, nullptr);
  if (state == nullptr) return;
  std::lock_guard lock(state->mutex);
  const auto is_ours = [&](const ClaimState::Held& one) { return one.id == id_; };
  const auto place = std::ranges::find_if(state->held, is_ours);
  if (place == state->held.end()) return;  // lost, or let go by a flush
  if (state->let_go(place, outcome_)) state->changed.notify_all();
}

// The keeper's thread, for as long as there is a keeper.
class ClaimUpkeep final : public LaneCall {
 public:
  explicit ClaimUpkeep(std::shared_ptr<ClaimState> state) : state_(std::move(state)) {}

  void run(const std::stop_token& shutdown) noexcept override {
    set_deadline(Clock::time_point::min());  // idle is no reason to wait for it
    std::unique_lock lock(state_->mutex);
    while (!shutdown.stop_requested()) {
      // Also up again when there is something to do before that.
      const auto next = state_->next_task();
      wait_until(state_->changed, lock, shutdown, next,
                 [&] { return state_->has_task() || state_->next_task() < next; });
      if (shutdown.stop_requested()) break;
      // What is held comes first: a claim that is let go ends by itself, one that is lost is
      // encoded twice.
      const auto now = Clock::now();
      state_->release_ripe(now);
      if (const auto due = state_->due(now); due != state_->held.end()) {
        renew(lock, due, shutdown);
      } else {
        release_next(lock, now, shutdown);
      }
    }
    state_->release_ripe(Clock::time_point::max());
    // One at least, whatever a busy machine has made of the time that is meant for the store.
    auto now = Clock::now();
    const auto end = now + std::min<Clock::duration>(last_words, state_->timeout);
    for (; !state_->releasing.empty() && now < end; now = Clock::now()) release_one(lock, end, {});
  }

 private:
  StoreContext context_until(Clock::time_point deadline, const std::stop_token& cancel) {
    set_deadline(deadline);
    StoreContext context;
    context.deadline = deadline;
    context.cancel = cancel;
    return context;
  }

  void release_next(std::unique_lock<std::mutex>& lock, Clock::time_point now,
                    const std::stop_token& cancel) {
    state_->forget_expired(now);
    if (state_->releasing.empty()) {
      state_->changed.notify_all();  // nothing may be left
    } else {
      release_one(lock, now + state_->timeout, cancel);
    }
  }

  // Not tried again: the ttl ends what could not be released.
  void release_one(std::unique_lock<std::mutex>& lock, Clock::time_point deadline,
                   const std::stop_token& cancel) {
    auto& calling = state_->calling;
    calling.splice(calling.end(), state_->releasing, state_->releasing.begin());
    const auto& [key, model, number, tier, token] = *calling.front().claimed;
    const ClaimOutcome outcome = calling.front().outcome;
    lock.unlock();
    const StoreResult result =
        call([&] { return tier->release(key, token, outcome, context_until(deadline, cancel)); });
    set_deadline(Clock::time_point::min());
    if (result.is_fault()) tier->complain("does not take a claim back", result);
    lock.lock();
    if (result.is_fault()) ++state_->unreleased;
    if (result.status == StoreStatus::conflict) ++state_->lost;
    calling.clear();
    state_->changed.notify_all();
  }

  // What is let go meanwhile is released afterwards: the list keeps it where it can be found.
  void renew(std::unique_lock<std::mutex>& lock, ClaimState::List::iterator due,
             const std::stop_token& cancel) {
    const auto start = Clock::now();
    due->next_renewal = start + state_->renewal_interval();
    const std::uint64_t id = due->id;
    const auto claimed = due->claimed;
    lock.unlock();
    const auto context = context_until(start + state_->timeout, cancel);
    const StoreResult result = call(
        [&] { return claimed->tier->renew(claimed->key, claimed->token, state_->ttl, context); });
    set_deadline(Clock::time_point::min());
    if (result.is_fault()) claimed->tier->complain("does not renew a claim", result);
    lock.lock();
    if (result.ok()) note_renewal(id, start);
    if (result.status != StoreStatus::conflict) return;
    // Another has it: there is nothing left to hold.
    state_->lost += std::erase_if(state_->held, [&](const auto& one) { return one.id == id; });
    state_->changed.notify_all();
  }

  template <typename Call>
  static StoreResult call(Call store_call) noexcept {
    try {
      return store_call();
    } catch (...) {  // out of memory
      return {StoreStatus::no_space};
    }
  }

  // It may have been let go meanwhile.
  void note_renewal(std::uint64_t id, Clock::time_point start) {
    for (auto* list : {&state_->held, &state_->lingering, &state_->releasing}) {
      for (ClaimState::Held& one : *list) {
        if (one.id == id) one.valid_until = start + state_->ttl;
      }
    }
  }

  const std::shared_ptr<ClaimState> state_;
};

ClaimKeeper::ClaimKeeper(std::chrono::milliseconds ttl, std::chrono::microseconds timeout)
    : state_(std::make_shared<ClaimState>(ttl, timeout)), lane_(1, 1) {
  lane_.submit(std::make_shared<ClaimUpkeep>(state_));
}

ClaimKeeper::~ClaimKeeper() { shut_down(); }

std::chrono::milliseconds ClaimKeeper::ttl() const { return state_->ttl; }

ClaimHold ClaimKeeper::hold(Claimed claimed) {
  const std::size_t tier = claimed.tier_number;
  auto shared = std::make_shared<const Claimed>(std::move(claimed));
  std::lock_guard lock(state_->mutex);
  const std::uint64_t id = ++state_->last_id;
  const auto now = Clock::now();
  const auto due = now + state_->renewal_interval();
  const bool is_first = std::ranges::all_of(
      state_->held, [due](const ClaimState::Held& one) { return one.next_renewal > due; });
  state_->held.push_back(
      {id, std::move(shared), due, now + state_->ttl, {}, ClaimOutcome::not_stored});
  // Otherwise the thread is up in time for another, and then sees this one, which is due later.
  if (is_first) state_->changed.notify_all();
  return {state_, id, tier};
}

void ClaimHold::pause_renewals() noexcept {
  if (state_ == nullptr || std::exchange(is_paused_, true)) return;
  renew_next(Clock::time_point::max());
}

void ClaimHold::resume_renewals() noexcept {
  if (state_ == nullptr || !std::exchange(is_paused_, false)) return;
  renew_next(Clock::now());
  state_->changed.notify_all();
}

void ClaimHold::renew_next(Clock::time_point when) noexcept {
  std::lock_guard lock(state_->mutex);
  const auto is_ours = [&](const ClaimState::Held& one) { return one.id == id_; };
  const auto place = std::ranges::find_if(state_->held, is_ours);
  if (place != state_->held.end()) place->next_renewal = when;
}

void ClaimKeeper::let_go(const std::function<bool(const Claimed&)>& which) {
  std::lock_guard lock(state_->mutex);
  for (auto* list : {&state_->held, &state_->lingering}) {
    for (auto one = list->begin(); one != list->end();) {
      const auto next = std::next(one);
      if (which(*one->claimed)) state_->release(*list, one);
      one = next;
    }
  }
  state_->changed.notify_all();
}

bool ClaimKeeper::wait_idle(Clock::time_point deadline) {
  std::unique_lock lock(state_->mutex);
  ++state_->hurried;
  state_->changed.notify_all();
  const bool is_idle =
      state_->changed.wait_until(lock, deadline, [this] { return state_->is_idle(); });
  --state_->hurried;
  return is_idle;
}

std::uint64_t ClaimKeeper::lost() const {
  std::lock_guard lock(state_->mutex);
  return state_->lost;
}

std::uint64_t ClaimKeeper::unreleased() const {
  std::lock_guard lock(state_->mutex);
  return state_->unreleased;
}

void ClaimKeeper::shut_down() { lane_.shut_down(Clock::now() + 2 * last_words); }

}  // namespace vitrove
