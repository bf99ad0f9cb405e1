// Tier: one store as the cache sees it: its calls made safe, its breakers, its counters, and the
// keys whose value there is known to be bad.
//
// Calls made safe: an exception, a wrong number of results and a status nobody knows all become
// io_error of the keys concerned (field cases B56, B57). Gets and puts have breakers of their own:
// a full disk must not keep anybody from reading it.
//
// Shared by the controller and by its running calls. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "cache/breaker.h"
#include "cache/delete_fences.h"
#include "cache/fetch_costs.h"
#include "cache/op_stats.h"
#include "vitrove/embedding_store.h"

namespace vitrove {

struct TierOptions {
  std::uint32_t breaker_faults = 5;
  std::chrono::milliseconds breaker_pause{2'000};
};

class Tier {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Direction : std::uint8_t { reads, writes };

  Tier(std::shared_ptr<EmbeddingStore> store, std::string name, const TierOptions& options);

  const std::string& name() const { return name_; }
  // Of now: a store that connects in the background may learn more.
  StoreCapabilities capabilities() const noexcept;
  StoreHealth health() const noexcept;

  // Always one result a key. Nothing is counted.
  std::vector<StoreResult> exist(std::span<const EmbeddingKey> keys, const StoreContext& context);
  std::vector<StoreResult> get(std::span<const EmbeddingKey> keys,
                               std::span<const MutableBufferList> buffers,
                               const StoreContext& context);
  std::vector<StoreResult> put(std::span<const EmbeddingKey> keys,
                               std::span<const ConstBufferList> buffers, PutMode mode,
                               const StoreContext& context);
  std::vector<StoreResult> remove(std::span<const EmbeddingKey> keys, const StoreContext& context);
  StoreResult claim(const EmbeddingKey& key, std::chrono::milliseconds ttl, ClaimToken& token,
                    const StoreContext& context);
  StoreResult renew(const EmbeddingKey& key, const ClaimToken& token, std::chrono::milliseconds ttl,
                    const StoreContext& context);
  StoreResult release(const EmbeddingKey& key, const ClaimToken& token, ClaimOutcome outcome,
                      const StoreContext& context);
  StoreResult list(const ListOptions& options, const std::function<bool(const ListedValue&)>& visit,
                   const StoreContext& context);

  // Whether the breaker lets a visit through; who is let through reports the verdict.
  Breaker::Admission admit(Direction direction);
  // Whether it would be let through now, without being so.
  bool is_paused(Direction direction) const;
  void report(Direction direction, bool fault);
  // A call is a fault of the store when no key got a proper answer.
  static bool is_fault(std::span<const StoreResult> results);
  // Something else stands where the value should: nothing is wrong with the store. (A file store
  // answers `conflict` then; its EISDIR and ELOOP are of its own directories.)
  static bool is_of_its_key(const StoreResult& result);

  // The next put of a bad key replaces what is there. A value that was not believed is not asked
  // for again before that, or for a while when no put comes about; one that could not be read may
  // be readable the next time. Where too many are not believed, none is for that while.
  enum class Bad : std::uint8_t { unreadable, not_believed };
  void mark_bad(const EmbeddingKey& key, Bad how);
  // What was there has been replaced, or has gone.
  void mark_renewed(const EmbeddingKey& key);
  // It was read and is as it should be. Says nothing against a mark that was made meanwhile, since
  // the read began before what the mark is about.
  void mark_readable(const EmbeddingKey& key);
  bool is_bad(const EmbeddingKey& key) const;      // replace it
  bool is_avoided(const EmbeddingKey& key) const;  // and do not read it now

  // Puts that the store would refuse, and is not asked for. Counted; said once.
  void skipped_too_large(std::size_t values, std::uint64_t limit);
  // A line in the log, every ten seconds at most.
  void complain(std::string_view what, const StoreResult& result);

  // What it is being told to delete: neither read nor put before that is over.
  DeleteFences& deletions() { return deletions_; }
  const DeleteFences& deletions() const { return deletions_; }

  // What its gets take.
  FetchCosts& fetch_costs() { return fetch_costs_; }

  OpStats& gets() { return gets_; }
  OpStats& puts() { return puts_; }
  OpStats& exists() { return exists_; }
  OpStats& removes() { return removes_; }
  StoreStats snapshot() const;

 private:
  template <typename Call>
  std::vector<StoreResult> guarded(std::size_t keys, Call call);
  Breaker& breaker(Direction direction) {
    return direction == Direction::reads ? read_breaker_ : write_breaker_;
  }
  void say_too_large(std::uint64_t limit);

  const std::shared_ptr<EmbeddingStore> store_;
  const std::string name_;
  Breaker read_breaker_;
  Breaker write_breaker_;
  LogThrottle throttle_{std::chrono::seconds(10)};
  std::atomic<bool> said_too_large_{false};
  OpStats gets_, puts_, exists_, removes_;
  FetchCosts fetch_costs_;
  DeleteFences deletions_;

  mutable std::mutex bad_mutex_;
  std::unordered_map<EmbeddingKey, Clock::time_point> bad_;  // until when to avoid it
  Clock::time_point all_avoided_until_ = Clock::time_point::min();
};

}  // namespace vitrove
