#include "stores/mooncake/call_table.h"

#include <algorithm>
#include <utility>

#include "base/stoppable_wait.h"

namespace vitrove::mooncake {

std::uint64_t CallTable::add(Terms terms) {
  auto call = std::make_shared<Call>();
  call->terms = std::move(terms);
  std::lock_guard lock(mutex_);
  const std::uint64_t id = next_++;
  calls_.emplace(id, std::move(call));
  return id;
}

CallResult CallTable::wait(std::uint64_t id) {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Call> call = calls_.at(id);
  const auto done = [&] { return call->done || call->released; };
  if (call->terms.may_leave) {
    wait_until(call->changed, lock, call->terms.cancel, call->terms.deadline, done);
  } else {
    call->changed.wait(lock, done);
  }
  if (!call->done) {
    call->awaited = false;
    if (call->released) return {};
    const bool left = call->terms.cancel.stop_requested();
    return {left ? CallEnd::cancelled : CallEnd::timed_out, {}, {}};
  }
  calls_.erase(id);
  return {call->end, std::move(call->answers), std::move(call->terms.block)};
}

bool CallTable::is_done(std::uint64_t id) const {
  std::lock_guard lock(mutex_);
  return calls_.at(id)->done;
}

void CallTable::finish(Call& call, CallEnd end) {
  call.done = true;
  call.end = end;
  call.changed.notify_all();
}

bool CallTable::answer(std::uint64_t id, std::vector<wire::Answer> answers) {
  std::shared_ptr<Call> abandoned;  // its block is given back after the lock
  std::lock_guard lock(mutex_);
  const auto found = calls_.find(id);
  if (found == calls_.end() || found->second->done) return true;
  Call& call = *found->second;
  if (answers.size() != call.terms.answers) return false;
  if (!call.awaited) {
    abandoned = std::move(found->second);
    calls_.erase(found);
    return true;
  }
  call.answers = std::move(answers);
  finish(call, CallEnd::answered);
  return true;
}

// Allocates nothing.
void CallTable::lose_all() {
  std::map<std::uint64_t, std::shared_ptr<Call>> abandoned;  // given back after the lock
  std::lock_guard lock(mutex_);
  for (auto it = calls_.begin(); it != calls_.end();) {
    Call& call = *it->second;
    if (!call.awaited) {
      abandoned.insert(calls_.extract(it++));
      continue;
    }
    if (!call.done) finish(call, CallEnd::lost);
    ++it;
  }
}

void CallTable::let_leave() {
  std::lock_guard lock(mutex_);
  for (const auto& [id, call] : calls_) {
    if (!call->terms.may_leave || call->done) continue;
    call->released = true;
    call->changed.notify_all();
  }
}

void CallTable::forget(std::uint64_t id) {
  std::shared_ptr<Call> call;  // its block is given back after the lock
  std::lock_guard lock(mutex_);
  call = std::move(calls_.at(id));
  calls_.erase(id);
}

std::optional<CallTable::Clock::time_point> CallTable::first_given_up() const {
  std::lock_guard lock(mutex_);
  std::optional<Clock::time_point> first;
  for (const auto& [id, call] : calls_) {
    if (call->done) continue;
    if (!first || call->terms.given_up < *first) first = call->terms.given_up;
  }
  return first;
}

std::size_t CallTable::size() const {
  std::lock_guard lock(mutex_);
  return calls_.size();
}

}  // namespace vitrove::mooncake
