// CacheCore: what has to live as long as anybody holds an entry or a page: the pool, the slab, the
// table, the eviction policy and the counters. Store calls share it, so that one which hangs for
// ever keeps valid memory even after the controller is gone.
//
// Locks, in the order in which they may nest: eviction, shard, then the leaves (keys of an entry,
// slab, pool, flush log, put queues). Below a put queue there are the fences of its tier and the
// claims that are held. A reader of a hit takes none of them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "cache/counters.h"
#include "cache/entry_slab.h"
#include "cache/entry_table.h"
#include "cache/eviction_plan.h"
#include "cache/flush_log.h"
#include "cache/pool_report.h"
#include "vitrove/embedding_cache_controller.h"
#include "vitrove/eviction_policy.h"
#include "vitrove/page_pool.h"

namespace vitrove {

enum class DropReason : std::uint8_t { space, flush, removed };
// Why rows went to the heap.
enum class Uncached : std::uint8_t { too_large, no_space };

class CacheCore {
 public:
  // Announces the arena to the stores, and takes it back from them at the end.
  CacheCore(const ControllerOptions& options, std::vector<std::shared_ptr<EmbeddingStore>> stores);
  ~CacheCore();
  CacheCore(const CacheCore&) = delete;
  CacheCore& operator=(const CacheCore&) = delete;

  PagePool& pool() { return pool_; }
  const PagePool& pool() const { return pool_; }
  EntryTable& table() { return table_; }
  EvictionPolicy& policy() { return *policy_; }
  FlushLog& flushes() { return flushes_; }
  LookupCounters& lookups() { return lookups_; }

  // --- space ---

  // Pages for a payload, evicting when that can help; nothing exactly when the free and the
  // evictable runs together cannot hold its whole rows. At most PagePool::preferred_runs of them
  // while there is anybody to evict: a full pool whose every hole was taken would end up with ten
  // runs an entry. Never waits for anybody to release anything. With shares (eviction_policy.h),
  // evictable is what may go for an item of `modality`.
  std::optional<PageRuns> allocate(std::uint64_t payload_bytes, std::uint64_t row_bytes,
                                   std::optional<Modality> modality = {});
  Uncached why_uncached(std::uint64_t payload_bytes, std::uint64_t row_bytes) const;

  // --- entries ---

  // A private entry, described by `header` and `side`, over pages or over the heap. The pages'
  // segments hold the rows and nothing else.
  EntryPin make_pooled(const ValueHeader& header, EntrySide side, PageRuns pages);
  EntryPin make_uncached(const ValueHeader& header, EntrySide side, std::vector<std::byte> rows,
                         Uncached why);
  // A copy of the rows on the heap that nobody counts: for views that let go of their pin.
  EntryPin make_detached(const Entry& entry);

  // A private pooled entry goes live once, in two steps, so that it can be dropped from the moment
  // it is seen: who took its chance admits it (below), then `go_live_locked` makes it visible under
  // `key` (its own or an alias; the caller holds the shard's mutex).
  void go_live_locked(EntryTable::Shard& shard, const EmbeddingKey& key, Entry& entry);
  // Takes a live entry out of the table, under all its keys; its pages go with the last pin. False
  // when somebody else did it.
  bool drop(Entry& entry, DropReason reason);

  // For Entry: the last count is gone.
  void free_entry(Entry& entry) noexcept;

  // --- counters ---

  void count_reject(Reject reason) noexcept;
  void count_dangling_alias() noexcept { dangling_aliases_.fetch_add(1, relaxed); }
  // For items that found no entry, or not yet.
  void count_lookup(const ValueExpectation& item, LookupResult result) {
    lookups_.count(groups_.number_of(item.modality, item.model_fingerprint), result);
  }
  void add_stats(ControllerStats& stats) const;
  std::vector<ModelLookups> model_lookups() const;
  PoolReport inspect(std::size_t most_valued) const {
    return make_pool_report(slab_, pool_.page_bytes(), most_valued);
  }
  // Throws std::logic_error.
  void check_invariants();

 private:
  friend class EntryAdmission;
  static constexpr auto relaxed = std::memory_order_relaxed;
  static constexpr std::size_t reject_count = static_cast<std::size_t>(Reject::not_finite) + 1;

  std::optional<PageRuns> allocate_free(const PayloadNeed& need,
                                        std::size_t max_runs = PagePool::preferred_runs);
  // Evicts in the policy's order, or who lies where the allocation is to lie. Both hold the
  // eviction mutex and may give it up for a moment.
  std::optional<PageRuns> allocate_by_policy(const PayloadNeed& need, const RoomWanted& wanted,
                                             std::unique_lock<std::mutex>& eviction);
  std::optional<PageRuns> allocate_by_place(const PayloadNeed& need, const RoomWanted& wanted,
                                            std::unique_lock<std::mutex>& eviction);
  // Under the eviction mutex.
  std::optional<std::vector<std::uint32_t>> plan(const PayloadNeed& need, const RoomWanted& wanted);
  // Pages that went, or nothing when there is no victim. Under the eviction mutex.
  std::optional<std::uint32_t> evict_next(const RoomWanted& wanted);
  void evict(Entry& entry);  // whose count the caller owns
  void admit(Entry& entry);
  void retract(Entry& entry);
  void unmap(Entry& entry) noexcept;
  EntryPin make_entry(const ValueHeader& header, EntrySide side);
  void lend_turn(std::unique_lock<std::mutex>& eviction, std::uint32_t& evicted) const;

  const bool enable_eviction_;
  const std::uint32_t max_eviction_batch_;
  std::vector<std::shared_ptr<EmbeddingStore>> stores_;
  PagePool pool_;
  std::unique_ptr<EvictionPolicy> policy_;
  std::mutex eviction_mutex_;  // serialises the policy's changes
  EntrySlab slab_;
  EntryTable table_{slab_, *policy_};
  FlushLog flushes_;
  LookupGroups groups_;
  LookupCounters lookups_;

  std::atomic<std::uint64_t> entries_ready_{0};
  std::atomic<std::uint64_t> payload_bytes_{0};
  std::array<std::atomic<std::uint64_t>, 3> drops_{};
  std::array<std::atomic<std::uint64_t>, 2> uncached_{};
  std::array<std::atomic<std::uint64_t>, reject_count> rejects_{};
  std::atomic<std::uint64_t> dangling_aliases_{0};
};

// An entry that was told to the policy, and is taken back from it unless it went live. The policy's
// lock comes before a shard's: made and destroyed outside of one.
class EntryAdmission {
 public:
  // Of nothing when somebody else has or had the chance to make it live.
  EntryAdmission(CacheCore& core, const EntryPin& entry) : core_(core) {
    if (!entry->details->take_chance()) return;
    core.admit(*entry);
    entry_ = entry.another();
  }
  EntryAdmission(const EntryAdmission&) = delete;
  EntryAdmission& operator=(const EntryAdmission&) = delete;
  ~EntryAdmission() {
    if (entry_ && !is_live_) core_.retract(*entry_);
  }

  explicit operator bool() const { return static_cast<bool>(entry_); }
  void went_live() { is_live_ = true; }

 private:
  CacheCore& core_;
  EntryPin entry_;
  bool is_live_ = false;
};

// Pages that go back to the pool unless somebody takes them over.
class PageLease {
 public:
  PageLease() = default;
  PageLease(PagePool& pool, PageRuns runs) : pool_(&pool), runs_(std::move(runs)) {}
  PageLease(PageLease&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)), runs_(std::move(other.runs_)) {}
  PageLease& operator=(PageLease&& other) noexcept {
    if (this != &other) {
      reset();
      pool_ = std::exchange(other.pool_, nullptr);
      runs_ = std::move(other.runs_);
    }
    return *this;
  }
  ~PageLease() { reset(); }

  void reset() {
    if (PagePool* const pool = std::exchange(pool_, nullptr)) pool->release(runs_);
  }
  PageRuns take() {
    pool_ = nullptr;
    return std::move(runs_);
  }
  PageRuns& runs() { return runs_; }
  const PageRuns& runs() const { return runs_; }
  explicit operator bool() const { return pool_ != nullptr; }

 private:
  PagePool* pool_ = nullptr;
  PageRuns runs_;
};

}  // namespace vitrove
