// HitHistory: how lookups have grown over the last hour, so that hit ratios of the last minutes can
// be told beside those since the start. Counters are taken down every ten seconds by whoever calls
// `sample`; nothing is added to a lookup itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "vitrove/embedding_cache_controller.h"

namespace vitrove {

struct HitCounts {
  std::uint64_t hits = 0;  // that spared an encode, wherever the rows came from
  std::uint64_t lookups = 0;

  HitCounts& operator+=(const HitCounts& other) {
    hits += other.hits;
    lookups += other.lookups;
    return *this;
  }
  // Nothing where nobody looked.
  std::optional<double> ratio() const {
    if (lookups == 0) return std::nullopt;
    return static_cast<double>(hits) / static_cast<double>(lookups);
  }
};
HitCounts hit_counts(const LookupStats& stats);

class HitHistory {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds period{10};
  static constexpr std::chrono::minutes reach{60};

  bool is_due(Clock::time_point now) const;
  // `lines` as the controller tells them: none ever goes or changes its place.
  void sample(Clock::time_point now, std::span<const ModelLookups> lines);

  // What was counted, line by line, from `window` before `now` until the `lines` of now: up to ten
  // seconds more, all of it when the window began before the first sample.
  std::vector<HitCounts> since(Clock::time_point now, Clock::duration window,
                               std::span<const ModelLookups> lines) const;

 private:
  struct Sample {
    Clock::time_point at;
    std::vector<HitCounts> counts;
  };
  mutable std::mutex mutex_;
  std::deque<Sample> samples_;  // oldest first
};

}  // namespace vitrove
