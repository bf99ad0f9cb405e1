#include "server/hit_history.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace vitrove {
namespace {

std::vector<HitCounts> counts_of(std::span<const ModelLookups> lines) {
  std::vector<HitCounts> counts;
  for (const ModelLookups& line : lines) counts.push_back(hit_counts(line.lookups));
  return counts;
}

}  // namespace

HitCounts hit_counts(const LookupStats& stats) {
  const std::uint64_t hits = stats.local + stats.joined + stats.store;
  return {hits, hits + stats.miss};
}

bool HitHistory::is_due(Clock::time_point now) const {
  std::lock_guard lock(mutex_);
  return samples_.empty() || now - samples_.back().at >= period;
}

void HitHistory::sample(Clock::time_point now, std::span<const ModelLookups> lines) {
  Sample fresh{now, counts_of(lines)};
  std::lock_guard lock(mutex_);
  samples_.push_back(std::move(fresh));
  // One from before the longest window stays: that is where it begins.
  while (samples_.size() > 1 && samples_[1].at <= now - reach) samples_.pop_front();
}

std::vector<HitCounts> HitHistory::since(Clock::time_point now, Clock::duration window,
                                         std::span<const ModelLookups> lines) const {
  std::vector<HitCounts> counts = counts_of(lines);
  std::lock_guard lock(mutex_);
  const auto after = std::ranges::upper_bound(samples_, now - window, {}, &Sample::at);
  if (after == samples_.begin()) return counts;
  const std::vector<HitCounts>& base = std::prev(after)->counts;
  for (std::size_t i = 0; i < std::min(counts.size(), base.size()); ++i) {
    // Lookups that are counted just now may be seen in part.
    counts[i].hits -= std::min(counts[i].hits, base[i].hits);
    counts[i].lookups -= std::min(counts[i].lookups, base[i].lookups);
  }
  return counts;
}

}  // namespace vitrove
