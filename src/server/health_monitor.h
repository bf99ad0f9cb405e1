// HealthMonitor: looks at the stores once a second and whenever somebody asks, on a thread of its
// own. Who asks is answered after a fresh look, or from the last one when a store takes its time:
// /health answers in milliseconds even when a store does not answer at all. The thread that
// answers, and never waits for a store, also takes down how lookups grow.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/encode_service.h"
#include "server/hit_history.h"

namespace vitrove {

struct StoreSummary {
  std::string name;
  StoreState state = StoreState::ready;  // an open breaker counts as well
  // For operators: not every caller may see it. Nothing before the first look.
  StoreHealth health;
};

// "ready", "degraded", "down".
std::string_view state_name(StoreState state);

class HealthMonitor {
 public:
  // The service outlives the monitor.
  explicit HealthMonitor(const EncodeService& service);
  ~HealthMonitor() { stop(); }
  HealthMonitor(const HealthMonitor&) = delete;
  HealthMonitor& operator=(const HealthMonitor&) = delete;

  // Calls `answer` soon, on another thread; it must not block. What it throws is logged.
  void ask(std::function<void()> answer);

  // Answers whoever still waits, and joins. Idempotent.
  void stop();

  // As of the last look.
  std::vector<StoreSummary> stores() const;
  // True when a store is not ready, or the last look is overdue.
  bool is_degraded() const;
  const HitHistory& history() const { return history_; }

 private:
  struct Question {
    std::chrono::steady_clock::time_point patience;
    std::uint64_t look;  // the first one that began after it was asked
    std::function<void()> answer;
  };
  std::optional<std::vector<StoreSummary>> look() const noexcept;
  void take(std::vector<StoreSummary> fresh);
  static void give(const std::function<void()>& answer) noexcept;
  void keep_looking();
  void keep_answering();
  void note_lookups() noexcept;

  const EncodeService& service_;
  HitHistory history_;
  mutable std::mutex mutex_;
  std::condition_variable asked_;
  std::condition_variable looked_;
  std::deque<Question> questions_;
  std::uint64_t looks_begun_ = 0;
  std::uint64_t looks_done_ = 0;
  std::uint64_t looks_wanted_ = 1;
  std::vector<StoreSummary> stores_;
  std::chrono::steady_clock::time_point looked_at_ = std::chrono::steady_clock::now();
  bool stopping_ = false;
  std::thread looker_;
  std::thread answerer_;
};

}  // namespace vitrove
