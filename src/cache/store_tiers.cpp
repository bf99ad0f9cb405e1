#include "cache/store_tiers.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace vitrove {
namespace {

// What waits for a put is pinned: half of the pool at most.
std::uint64_t max_queued_bytes(const ControllerOptions& options) {
  const std::uint64_t pool = options.pool.pool_bytes;
  return pool == 0 ? options.max_pending_put_bytes
                   : std::min(options.max_pending_put_bytes, pool / 2);
}

}  // namespace

StoreTiers::StoreTiers(const std::shared_ptr<CacheCore>& core, const ControllerOptions& options,
                       std::span<const std::shared_ptr<EmbeddingStore>> stores)
    : never_puts_(options.write_policy == WritePolicy::never) {
  std::map<std::string, int> names;
  for (const auto& store : stores) {
    std::string name(store->name());
    if (const int earlier = names[name]++; earlier > 0) name += "#" + std::to_string(earlier);
    auto tier = std::make_shared<Tier>(store, name,
                                       TierOptions{options.breaker_faults, options.breaker_pause});
    const bool is_behind = options.write_policy == WritePolicy::behind;
    const PutQueue::Options puts{
        options.put_threads, max_queued_bytes(options), options.put_timeout,
        is_behind ? options.write_behind_delay : std::chrono::microseconds(0),
        options.skip_cheap_puts};
    puts_.push_back(std::make_unique<PutQueue>(core, tier, puts));
    reads_.push_back(
        {std::move(tier), std::make_unique<Lane>(options.get_threads, options.max_pending_gets)});
  }
}

void StoreTiers::put(const std::shared_ptr<PutValue>& value, std::size_t tiers, ClaimHold claim) {
  if (never_puts_) return;
  if (value == nullptr) {
    unstaged_.fetch_add(tiers, std::memory_order_relaxed);
    return;
  }
  for (std::size_t number = 0; number < tiers; ++number) {
    const bool is_claimed = claim && claim.tier() == number;
    puts_[number]->add(value, is_claimed ? std::exchange(claim, {}) : ClaimHold());
  }
}

std::vector<PutQueue::Gathering> StoreTiers::gather_puts() {
  std::vector<PutQueue::Gathering> gatherings;
  gatherings.reserve(puts_.size());
  for (const auto& queue : puts_) gatherings.emplace_back(*queue);
  return gatherings;
}

void StoreTiers::revoke(const std::function<bool(const PutValue&)>& which) {
  for (const auto& queue : puts_) queue->revoke(which);
}

bool StoreTiers::wait_for_puts(Clock::time_point deadline) {
  return std::ranges::all_of(puts_, [&](const auto& queue) { return queue->wait_idle(deadline); });
}

bool StoreTiers::wait_idle(Clock::time_point deadline) {
  return wait_for_puts(deadline) && std::ranges::all_of(reads_, [&](const ReadTier& read) {
           return read.lane->wait_idle(deadline);
         });
}

bool StoreTiers::shut_down(Clock::time_point bound) {
  bool all_ended = true;
  for (const ReadTier& read : reads_) all_ended = read.lane->shut_down(bound) && all_ended;
  for (const auto& queue : puts_) all_ended = queue->shut_down(bound) && all_ended;
  return all_ended;
}

std::vector<StoreStats> StoreTiers::stats() const {
  const auto now = Clock::now();
  std::vector<StoreStats> all;
  for (std::size_t number = 0; number < reads_.size(); ++number) {
    StoreStats stats = reads_[number].tier->snapshot();
    const Lane::Load load = reads_[number].lane->load(now);
    stats.get.pending = load.queued + load.running;
    stats.put.pending = puts_[number]->pending();
    all.push_back(std::move(stats));
  }
  return all;
}

std::uint64_t StoreTiers::quarantined_bytes() const {
  const auto now = Clock::now();
  std::uint64_t bytes = 0;
  for (const ReadTier& read : reads_) bytes += read.lane->load(now).quarantined_bytes;
  for (const auto& queue : puts_) bytes += queue->lane().load(now).quarantined_bytes;
  return bytes;
}

std::uint64_t StoreTiers::puts_skipped() const {
  std::uint64_t skipped = 0;
  for (const auto& queue : puts_) skipped += queue->skipped();
  return skipped;
}

std::uint64_t StoreTiers::puts_dropped() const {
  std::uint64_t dropped = unstaged_.load(std::memory_order_relaxed);
  for (const auto& queue : puts_) dropped += queue->dropped();
  return dropped;
}

}  // namespace vitrove
