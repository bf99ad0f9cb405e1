#include "cache/pool_report.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace vitrove {
namespace {

using Clock = std::chrono::steady_clock;

class PoolReporter {
 public:
  PoolReporter(std::uint64_t page_bytes, std::size_t most_valued)
      : page_bytes_(page_bytes), most_valued_(most_valued) {}

  void add(const Entry& entry) {
    const EntryDetails& details = *entry.details;
    Sum& sum = sum_of(entry.modality, details.header.model_fingerprint);
    const auto age = now_ - details.made_at;
    ++sum.line.entries;
    sum.line.runs += details.pages.segments.size();
    sum.line.bytes += details.pages.pages() * page_bytes_;
    sum.line.payload_bytes += details.header.payload_bytes();
    sum.age += age;
    sum.oldest = std::max(sum.oldest, age);
    consider(entry);
  }

  PoolReport take() {
    PoolReport report;
    for (Sum& sum : sums_) {
      const auto entries = static_cast<Clock::rep>(sum.line.entries);
      sum.line.mean_age = std::chrono::duration_cast<std::chrono::seconds>(sum.age / entries);
      sum.line.oldest_age = std::chrono::duration_cast<std::chrono::seconds>(sum.oldest);
      report.models.push_back(sum.line);
    }
    keep_best();
    report.most_valued = std::move(best_);
    return report;
  }

 private:
  struct Sum {
    ModelEntries line;
    Clock::duration age{0};
    Clock::duration oldest{0};
  };

  // Few models, and mostly the same one again.
  Sum& sum_of(Modality modality, const Digest256& model) {
    const auto found = std::ranges::find_if(sums_, [&](const Sum& sum) {
      return sum.line.modality == modality && sum.line.model == model;
    });
    if (found != sums_.end()) return *found;
    Sum fresh;
    fresh.line.modality = modality;
    fresh.line.model = model;
    return sums_.emplace_back(fresh);
  }

  void consider(const Entry& entry) {
    const std::uint64_t hits = entry.hits.load(std::memory_order_relaxed);
    const std::uint64_t saved = hits * entry.cost_us;
    if (saved <= least_saved_) return;
    best_.push_back(
        {entry.key, entry.modality, entry.details->header.model_fingerprint, hits, saved});
    if (best_.size() >= 2 * most_valued_ + 64) keep_best();
  }

  void keep_best() {
    std::ranges::sort(best_, std::ranges::greater{}, &ValuedKey::saved_us);
    if (best_.size() <= most_valued_) return;
    best_.resize(most_valued_);
    if (!best_.empty()) least_saved_ = best_.back().saved_us;
  }

  const std::uint64_t page_bytes_;
  const std::size_t most_valued_;
  const Clock::time_point now_ = Clock::now();
  std::vector<Sum> sums_;
  std::vector<ValuedKey> best_;
  std::uint64_t least_saved_ = 0;  // less does not count any more
};

}  // namespace

PoolReport make_pool_report(const EntrySlab& slab, std::uint64_t page_bytes,
                            std::size_t most_valued) {
  PoolReporter reporter(page_bytes, most_valued);
  for (PolicySlot slot = 0; slot < slab.reach(); ++slot) {
    Entry& entry = slab[slot];
    if (!entry.try_pin()) continue;
    const EntryPin pin(&entry);
    reporter.add(entry);
  }
  return reporter.take();
}

}  // namespace vitrove
