// Eviction policies: how much encode time each saves on one trace at equal pool size, beside LRU,
// and how far that is from what is possible offline.
//
//   bench_eviction [--trace FILE] [--requests N] [--seed N]
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "encode_trace.h"
#include "harness.h"
#include "offline_optimum.h"
#include "vitrove/eviction_policy.h"

namespace {

using namespace vitrove;
using bench::Harness;
using bench::Trace;
using bench::TraceRequest;

// A pool without pages: only who is held, and how many bytes that is.
class TraceCache {
 public:
  TraceCache(std::string_view policy, std::uint64_t capacity)
      : policy_(make_eviction_policy(policy)), capacity_(capacity) {}

  // Microseconds of encoding saved.
  std::uint64_t serve(const TraceRequest& request) {
    const auto found = slots_.find(request.key);
    if (found != slots_.end()) {
      policy_->on_hit(found->second);
      return request.cost_us;
    }
    if (request.bytes > capacity_) return 0;
    while (used_ + request.bytes > capacity_) evict();
    insert(request);
    return 0;
  }

 private:
  struct Held {
    std::uint64_t key = 0;
    std::uint64_t bytes = 0;
  };

  void evict() {
    const auto victim = policy_->next_victim([](PolicySlot) { return true; });
    policy_->on_erase(*victim);
    used_ -= held_[*victim].bytes;
    slots_.erase(held_[*victim].key);
    unused_.push_back(*victim);
  }

  void insert(const TraceRequest& request) {
    if (unused_.empty()) {
      unused_.push_back(static_cast<PolicySlot>(held_.size()));
      held_.emplace_back();
    }
    const PolicySlot slot = unused_.back();
    unused_.pop_back();
    held_[slot] = {request.key, request.bytes};
    slots_.emplace(request.key, slot);
    used_ += request.bytes;
    policy_->on_insert(slot, {.key_hash = request.key * 0x9E3779B97F4A7C15u,
                              .bytes = request.bytes,
                              .cost_us = request.cost_us});
  }

  std::unique_ptr<EvictionPolicy> policy_;
  std::uint64_t capacity_;
  std::uint64_t used_ = 0;
  std::unordered_map<std::uint64_t, PolicySlot> slots_;
  std::vector<Held> held_;
  std::vector<PolicySlot> unused_;
};

double saved_by(std::string_view policy, std::uint64_t capacity, const Trace& trace) {
  TraceCache cache(policy, capacity);
  double saved = 0;
  for (const TraceRequest& request : trace) saved += static_cast<double>(cache.serve(request));
  return saved;
}

void replay(Harness& harness, const std::string& name, const Trace& trace) {
  double cost = 0;
  std::uint64_t distinct_bytes = 0;
  std::unordered_set<std::uint64_t> seen;
  for (const TraceRequest& request : trace) {
    cost += static_cast<double>(request.cost_us);
    if (seen.insert(request.key).second) distinct_bytes += request.bytes;
  }
  if (!harness.json()) {
    std::printf("trace \"%s\": %zu requests for %zu media of %.1f GB; in %% of all encode time\n",
                name.c_str(), trace.size(), seen.size(), static_cast<double>(distinct_bytes) / 1e9);
  }
  for (const std::uint64_t thousandths : {5, 10, 20, 50}) {
    const std::uint64_t capacity = distinct_bytes / 1000 * thousandths;
    char pool[32];
    std::snprintf(pool, sizeof pool, "_pool_%.1f%%", static_cast<double>(thousandths) / 10);
    const auto saved = [&](std::string_view policy) {
      return 100 * saved_by(policy, capacity, trace) / cost;
    };
    const auto offline = bench::offline_bounds(trace, capacity);
    const double most = 100 * offline.most_us / cost;
    const std::string gdsf = "saved_" + name + "_gdsf" + pool;
    const std::string s3fifo = "saved_" + name + "_s3fifo" + pool;
    const double lru = saved("lru");
    const double by_gdsf = saved("gdsf");
    // GDSF is what promises to beat LRU; S3-FIFO knows nothing of costs.
    harness.record({gdsf, "%", "lru", bench::ratio_at_least(1)}, by_gdsf, lru);
    harness.record({gdsf + "_of_possible", "%", "offline, at most"}, by_gdsf, most);
    harness.record({s3fifo, "%", "lru"}, saved("s3fifo"), lru);
    harness.record({"saved_" + name + "_offline" + pool, "%", "offline, at most"},
                   100 * offline.least_us / cost, most);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Harness harness(argc, argv, {"--trace", "--requests", "--seed"});
  try {
    const std::string path = harness.option("--trace", "");
    const std::uint64_t seed = std::stoull(harness.option("--seed", "1"));
    const std::size_t requests = std::stoull(harness.option("--requests", "300000"));
    if (path.empty()) {
      replay(harness, "sessions", bench::TraceMaker(seed).make_sessions(requests));
      replay(harness, "independent", bench::TraceMaker(seed).make_independent(requests));
    } else {
      replay(harness, "file", bench::read_trace(path));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_eviction: %s\n", error.what());
    return 2;
  }
  return harness.finish();
}
