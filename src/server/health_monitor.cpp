#include "server/health_monitor.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.h"

namespace vitrove {
namespace {

constexpr std::chrono::seconds period{1};
constexpr std::chrono::seconds overdue_after{5};

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
    : service_(service), thread_([this] { run(); }) {}

HealthMonitor::~HealthMonitor() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

std::vector<StoreSummary> HealthMonitor::stores() const {
  std::lock_guard lock(mutex_);
  return stores_;
}

bool HealthMonitor::is_degraded() const {
  std::lock_guard lock(mutex_);
  if (std::chrono::steady_clock::now() - looked_at_ > overdue_after) return true;
  return std::ranges::any_of(
      stores_, [](const StoreSummary& store) { return store.state != StoreState::ready; });
}

void HealthMonitor::refresh() {
  std::vector<StoreSummary> fresh;
  for (const auto& store : service_.controller().store_health()) {
    fresh.push_back({store.name, store.breaker_open ? StoreState::down : store.health.state});
  }
  std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < fresh.size() && i < stores_.size(); ++i) {
    if (fresh[i].state == stores_[i].state) continue;
    logger()->warn("store {} is {}", fresh[i].name, state_name(fresh[i].state));
  }
  stores_ = std::move(fresh);
  looked_at_ = std::chrono::steady_clock::now();
}

void HealthMonitor::run() {
  std::unique_lock lock(mutex_);
  do {
    lock.unlock();
    try {
      refresh();
    } catch (const std::exception& error) {
      logger()->warn("cannot look at the stores: {}", error.what());
    }
    lock.lock();
  } while (!wake_.wait_for(lock, period, [this] { return stopping_; }));
}

}  // namespace vitrove
