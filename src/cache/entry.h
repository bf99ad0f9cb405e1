// Entry: one embedding in memory, and the count that keeps it there.
//
// All of an entry's lifetime is one word, `refs_`: a count in the low bits and the `dropped` bit.
//
//   live      count >= 1, not dropped   one count belongs to the table, the others are pins
//   dropped   the table gives it up     no new pin can be taken from the table; when the last
//                                       count goes, whoever took it away frees the entry, once
//   free      dropped, count 0          memory of the slab, waiting for its next embedding
//   private   dropped from the start    an uncached or flushed result: alive while it is viewed
//
// A dropped entry that is still pinned looks like a private one. So the chance to go live is kept
// apart, and is given once: who held a pin while the entry was dropped must not bring it back.
//
// Pins are taken without a lock from memory that may meanwhile have become another entry. That is
// sound because entries are type-stable (the slab never gives memory back before the end) and
// because `try_pin` only ever raises the count of an entry that is live: after it succeeded, the
// entry cannot change any more, so the caller compares the key then and lets go if it is another
// one. Everything but the atomics below is written before `refs_` is released, and read only by
// somebody who holds a count.
//
// Entries are mapped under their own key and under alias keys. The list of aliases only grows, and
// is closed when the entry is dropped, so that who drops an entry knows every cell of the table
// that points to it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "vitrove/embedding_cache_controller.h"
#include "vitrove/eviction_policy.h"

namespace vitrove {

class CacheCore;

// One further key of an entry. Never freed before the entry is.
struct AliasKey {
  EmbeddingKey key;
  AliasKey* next = nullptr;
};

// Side data, parsed and as they stand in a value: what was read may hold records that only a later
// version can parse. Not in the pages, where a few bytes of them would cost a page whenever the
// rows fill theirs.
struct EntrySide {
  SideData data;
  std::vector<std::byte> bytes;
};

// What the hit path does not need.
struct EntryDetails {
  ValueHeader header;
  EntrySide side;
  PageRuns pages;
  std::chrono::steady_clock::time_point made_at = std::chrono::steady_clock::now();
  std::vector<std::byte> heap;                   // the rows of an uncached entry
  std::vector<std::span<const std::byte>> runs;  // when there are several
  // Counted when puts wait for uses (ControllerOptions::put_after_uses). What came from a store
  // stands far beyond any number of them.
  static constexpr std::uint32_t used_elsewhere = std::uint32_t{1} << 31;
  std::atomic<std::uint32_t> uses{used_elsewhere};
  std::atomic<bool> may_go_live{false};  // in pages, and never was live
  std::mutex keys_mutex;                 // guards what follows
  std::vector<std::unique_ptr<AliasKey>> aliases;
  bool keys_closed = false;

  // True for the one caller who may make the entry live.
  bool take_chance() noexcept {
    return may_go_live.load(std::memory_order_relaxed) &&
           may_go_live.exchange(false, std::memory_order_relaxed);
  }
};

class alignas(64) EmbeddingView::Entry {
 public:
  static constexpr std::uint64_t dropped = std::uint64_t{1} << 63;
  // More twins than this find the entry through the stores or by their features.
  static constexpr std::size_t max_aliases = 64;

  Entry() = default;
  ~Entry();

  // --- pins ---

  // False when the table has given the entry up.
  bool try_pin() noexcept {
    // As if unpinned: so it mostly is, and reading first would fetch the line twice when another
    // core has it.
    std::uint64_t seen = 1;
    do {
      if (refs_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return true;
      }
    } while ((seen & dropped) == 0 && seen != 0);
    return false;
  }
  // For somebody who holds a count already.
  void add_pin() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  // May free the entry. Takes leaf locks only, so it may be called under any lock of the cache.
  void unpin() noexcept {
    if ((refs_.fetch_sub(1, std::memory_order_acq_rel) & ~dropped) == 1) free_self();
  }

  // --- life ---

  // Free to private: the caller holds the one count.
  void begin_private() noexcept { refs_.store(dropped | 1, std::memory_order_release); }
  // Private to live, under the lock of the shard of its key: the table gets a count of its own.
  void go_live() noexcept { refs_.fetch_sub(dropped - 1, std::memory_order_release); }
  // Live and unpinned to dropped, in one step; the table's count passes to the caller.
  bool try_evict() noexcept {
    std::uint64_t unpinned = 1;
    return refs_.compare_exchange_strong(unpinned, dropped | 1, std::memory_order_acq_rel,
                                         std::memory_order_relaxed);
  }
  // Live to dropped, pinned or not. True for the one caller who did it; he then owns the table's
  // count.
  bool drop() noexcept {
    return (refs_.fetch_or(dropped, std::memory_order_acq_rel) & dropped) == 0;
  }
  bool is_dropped() const noexcept {
    return (refs_.load(std::memory_order_acquire) & dropped) != 0;
  }
  // In pages and not live: it was flushed or removed, if only in this moment. Who revokes the puts
  // of a key does so after the drop, so that who asks this before he queues one is never too late.
  bool is_gone() const noexcept { return pooled && is_dropped(); }
  bool looks_evictable() const noexcept { return refs_.load(std::memory_order_relaxed) == 1; }
  // Counts beside the table's.
  std::uint64_t pins() const noexcept {
    const std::uint64_t seen = refs_.load(std::memory_order_relaxed);
    const std::uint64_t count = seen & ~dropped;
    return (seen & dropped) != 0 || count == 0 ? count : count - 1;
  }
  bool is_free() const noexcept { return (refs_.load(std::memory_order_relaxed) & ~dropped) == 0; }

  // --- keys ---

  bool has_key(const EmbeddingKey& wanted) const noexcept {
    return same(key, wanted) || has_alias(wanted);
  }
  // Four loads and not 32: the library compares arrays of std::byte one by one.
  static bool same(const EmbeddingKey& a, const EmbeddingKey& b) noexcept {
    return __builtin_memcmp(&a, &b, sizeof a) == 0;
  }
  // False when the list is closed or full. The caller holds a pin, and the lock of the key's shard
  // until the cell is in the table.
  bool add_key(const EmbeddingKey& further);
  std::vector<EmbeddingKey> alias_keys() const;
  // From then on the list is constant.
  void close_keys() const noexcept;

  // Of two hits at once one may be lost: it is for people, and must cost nothing.
  void count_hit() const noexcept {
    const std::uint32_t seen = hits.load(std::memory_order_relaxed);
    if (seen != ~std::uint32_t{0}) hits.store(seen + 1, std::memory_order_relaxed);
  }

  // --- content, constant while somebody holds a count ---

  std::uint64_t row_bytes() const { return std::uint64_t{dim} * element_size(dtype); }
  std::uint64_t payload_bytes() const { return rows * row_bytes(); }
  bool matches(const ValueExpectation& expected) const noexcept {
    return dim == expected.dim && dtype == expected.dtype && modality == expected.modality &&
           (!expected.rows || *expected.rows == rows) &&
           origin == origin_of(expected.model_fingerprint, expected.tenant);
  }
  // Four bytes of fingerprint and tenant: enough to notice a mix-up without a second cache line.
  static std::uint32_t origin_of(const Digest256& model, const Digest256& tenant) noexcept {
    std::uint32_t a;
    std::uint32_t b;
    __builtin_memcpy(&a, model.bytes.data(), sizeof a);
    __builtin_memcpy(&b, tenant.bytes.data(), sizeof b);
    return a ^ (b * 0x9E3779B1U);
  }

  // Reads the fields below off `details`, whose header, side data and rows are complete.
  // `run_bytes`: the rows, each run a whole number of them.
  void describe(std::vector<std::span<const std::byte>> run_bytes);

  // First cache line: all that a hit compares.
  EmbeddingKey key;
  PolicySlot slot = 0;
  std::uint32_t rows = 0;
  std::uint32_t dim = 0;
  std::uint32_t cost_us = 0;  // saturated
  std::uint32_t origin = 0;
  Modality modality = Modality::image;
  DType dtype = DType::float32;
  bool pooled = false;
  std::uint8_t group = 0;  // whose lookups a hit counts among

 private:
  void free_self() noexcept;
  bool has_alias(const EmbeddingKey& wanted) const noexcept;

  std::atomic<std::uint64_t> refs_{dropped};
  // Second cache line: what a view shows.
  std::atomic<const AliasKey*> aliases_{nullptr};

 public:
  CacheCore* core = nullptr;
  std::span<const std::span<const std::byte>> runs;
  std::array<std::span<const std::byte>, 1> only_run;
  std::unique_ptr<EntryDetails> details;
  // Pages held, for gauges that look at entries without holding them.
  std::atomic<std::uint32_t> pages_held{0};
  mutable std::atomic<std::uint32_t> hits{0};  // since it was made
};

using Entry = EmbeddingView::Entry;
static_assert(sizeof(EmbeddingView::Entry) == 128);

// A pin with an owner.
class EntryPin {
 public:
  EntryPin() = default;
  // Takes over a count that the caller holds.
  explicit EntryPin(Entry* entry) noexcept : entry_(entry) {}
  EntryPin(EntryPin&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  EntryPin& operator=(EntryPin&& other) noexcept {
    if (this != &other) {
      reset();
      entry_ = std::exchange(other.entry_, nullptr);
    }
    return *this;
  }
  ~EntryPin() { reset(); }

  EntryPin another() const noexcept {
    if (entry_ != nullptr) entry_->add_pin();
    return EntryPin(entry_);
  }
  void reset() noexcept {
    if (Entry* const entry = std::exchange(entry_, nullptr)) entry->unpin();
  }
  Entry* release() noexcept { return std::exchange(entry_, nullptr); }
  Entry* get() const noexcept { return entry_; }
  Entry* operator->() const noexcept { return entry_; }
  Entry& operator*() const noexcept { return *entry_; }
  explicit operator bool() const noexcept { return entry_ != nullptr; }

 private:
  Entry* entry_ = nullptr;
};

}  // namespace vitrove
