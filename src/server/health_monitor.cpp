#include "server/health_monitor.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.h"

namespace vitrove {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds period{1};
constexpr std::chrono::seconds overdue_after{5};
// A store that does not answer within this is spoken of as it was last seen.
constexpr std::chrono::milliseconds answer_within{50};

StoreState state_of(const StoreStats& store) {
  if (store.breaker_open) return StoreState::down;
  if (store.put_breaker_open) return std::max(store.health.state, StoreState::degraded);
  return store.health.state;
}

}  // namespace

std::string_view state_name(StoreState state) {
  switch (state) {
    case StoreState::ready:
      return "ready";
    case StoreState::degraded:
      return "degraded";
    case StoreState::down:
      return "down";
  }
  return "down";
}

HealthMonitor::HealthMonitor(const EncodeService& service)
    : service_(service),
      looker_([this] { keep_looking(); }),
      answerer_([this] { keep_answering(); }) {}

void HealthMonitor::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  asked_.notify_all();
  looked_.notify_all();
  for (std::thread* thread : {&looker_, &answerer_}) {
    if (thread->joinable()) thread->join();
  }
}

void HealthMonitor::ask(std::function<void()> answer) {
  {
    std::unique_lock lock(mutex_);
    if (stopping_) {
      lock.unlock();
      return give(answer);
    }
    looks_wanted_ = looks_begun_ + 1;
    questions_.push_back({Clock::now() + answer_within, looks_wanted_, std::move(answer)});
  }
  asked_.notify_all();
}

std::vector<StoreSummary> HealthMonitor::stores() const {
  std::lock_guard lock(mutex_);
  return stores_;
}

bool HealthMonitor::is_degraded() const {
  std::lock_guard lock(mutex_);
  if (Clock::now() - looked_at_ > overdue_after) return true;
  return std::ranges::any_of(
      stores_, [](const StoreSummary& store) { return store.state != StoreState::ready; });
}

// Nothing when even looking failed, such as for want of memory: what was last seen then stands, and
// becomes overdue.
std::optional<std::vector<StoreSummary>> HealthMonitor::look() const noexcept {
  try {
    std::vector<StoreSummary> stores;
    for (const auto& store : service_.controller().store_health()) {
      stores.push_back({store.name, state_of(store), store.health});
    }
    return stores;
  } catch (const std::exception& error) {
    try_log_error("the stores could not be looked at", error.what());
    return std::nullopt;
  }
}

// Under the lock.
void HealthMonitor::take(std::vector<StoreSummary> fresh) {
  for (std::size_t i = 0; i < fresh.size() && i < stores_.size(); ++i) {
    if (fresh[i].state == stores_[i].state) continue;
    logger()->warn("store {} is {}", fresh[i].name, state_name(fresh[i].state));
  }
  stores_ = std::move(fresh);
  looked_at_ = Clock::now();
}

void HealthMonitor::keep_looking() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const std::uint64_t number = ++looks_begun_;
    lock.unlock();
    auto fresh = look();
    lock.lock();
    if (fresh) take(std::move(*fresh));
    looks_done_ = number;
    looked_.notify_all();
    asked_.wait_for(lock, period, [this] { return stopping_ || looks_wanted_ > looks_begun_; });
  }
}

// For whoever gets no answer, the connection gives up when the time is over.
void HealthMonitor::give(const std::function<void()>& answer) noexcept {
  try {
    answer();
  } catch (const std::exception& error) {
    try_log_error("a question about health could not be answered", error.what());
  }
}

// A sample that is lost makes the next window a little longer.
void HealthMonitor::note_lookups() noexcept {
  try {
    const auto now = Clock::now();
    if (history_.is_due(now)) history_.sample(now, service_.controller().model_lookups());
  } catch (const std::exception& error) {
    try_log_error("the lookups could not be taken down", error.what());
  }
}

void HealthMonitor::keep_answering() {
  std::unique_lock lock(mutex_);
  for (;;) {
    lock.unlock();
    note_lookups();
    lock.lock();
    asked_.wait_for(lock, period, [this] { return stopping_ || !questions_.empty(); });
    if (questions_.empty()) {
      if (stopping_) return;
      continue;
    }
    const Question question = std::move(questions_.front());
    questions_.pop_front();
    looked_.wait_until(lock, question.patience,
                       [&] { return stopping_ || looks_done_ >= question.look; });
    lock.unlock();
    give(question.answer);
    lock.lock();
  }
}

}  // namespace vitrove
