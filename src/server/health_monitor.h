// HealthMonitor: asks the stores how they are once a second, on a thread of its own, so that
// /health answers at once even when a store does not.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/encode_service.h"

namespace vitrove {

struct StoreSummary {
  std::string name;
  StoreState state = StoreState::ready;  // an open breaker counts as down
};

// "ready", "degraded", "down".
std::string_view state_name(StoreState state);

class HealthMonitor {
 public:
  // The service outlives the monitor.
  explicit HealthMonitor(const EncodeService& service);
  ~HealthMonitor();
  HealthMonitor(const HealthMonitor&) = delete;
  HealthMonitor& operator=(const HealthMonitor&) = delete;

  // As of the last look.
  std::vector<StoreSummary> stores() const;
  // True when a store is not ready, or the last look is overdue.
  bool is_degraded() const;
  // Looks at once, on the caller's thread.
  void refresh();

 private:
  void run();

  const EncodeService& service_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<StoreSummary> stores_;
  std::chrono::steady_clock::time_point looked_at_ = std::chrono::steady_clock::now();
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace vitrove
