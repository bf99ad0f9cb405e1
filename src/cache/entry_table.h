// EntryTable: key to entry. Readers take no lock; writers take their shard's.
//
// A shard is an open-addressing array of cells; a cell is one word, half of the key's hash and the
// slot of the entry. Writers keep the array free of tombstones by shifting cells back over a
// removed one, and grow it by building a larger array; arrays that were outgrown stay until the end
// (together less than the one in use), because a reader may still walk them. What a reader finds is
// certain: it pins the entry first and compares the whole key then (entry.h). That it found nothing
// may be wrong while a writer moves cells, so whoever acts on an absence asks again under the lock.
//
// The same mutex guards the fills under way for the shard's keys (flight_board.h): that check and
// registration are one step is this one lock.
//
// Lock order: eviction, then shard, then everything else. No two shards at once.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/prefetch.h"
#include "cache/cell_arena.h"
#include "cache/entry.h"
#include "cache/entry_slab.h"

namespace vitrove {

struct Flight;

class EntryTable {
 public:
  class alignas(64) Shard {
   public:
    std::mutex mutex;
    // Guarded by `mutex`: the fill under way for a key.
    std::unordered_map<EmbeddingKey, std::shared_ptr<Flight>> flights;

   private:
    friend class EntryTable;
    struct Cells {
      std::size_t mask;
      CellArena::Cell* cells;  // 0 = empty
    };

    static void place(Cells& cells, std::uint64_t cell) noexcept;
    void use(std::unique_ptr<Cells> cells);

    std::atomic<Cells*> current_{nullptr};
    std::size_t used_ = 0;  // cells of the current array
    std::vector<std::unique_ptr<Cells>> arrays_;
  };

  static constexpr std::size_t shard_bits = 7;

  // `policy` is told which slots a lookup is about to hit.
  EntryTable(const EntrySlab& slab, const EvictionPolicy& policy);

  Shard& shard_of(const EmbeddingKey& key) noexcept {
    return shards_[hash_of(key) >> (64 - shard_bits)];
  }
  std::vector<Shard>& shards() noexcept { return shards_; }

  // Pinned, or nothing. No lock.
  EntryPin find(const EmbeddingKey& key) noexcept {
    return EntryPin(find_in(*shard_of(key).current_.load(std::memory_order_acquire), key));
  }
  // Pinned, or certainly absent: asks again under the lock.
  EntryPin find_surely(const EmbeddingKey& key) noexcept {
    if (EntryPin found = find(key)) return found;
    return find_again(key);
  }
  // find() of a request's keys, in order: `key_of(i)` is the i-th of `count` keys, and
  // `take(i, pin)` gets what was found. A lookup waits for memory twice, for the cell and for the
  // entry it names, and taking the pin holds up all that follows. So the cells of some keys are
  // fetched together, and then their entries: their waits become two.
  template <typename KeyOf, typename Take>
  void find_each(std::size_t count, KeyOf key_of, Take take) {
    if (count == 1) return take(0, find(key_of(0)));
    for (std::size_t from = 0; from < count; from += together) {
      const std::size_t to = std::min(count, from + together);
      std::array<const Shard::Cells*, together> cells;
      std::array<Entry*, together> seen;
      for (std::size_t i = from; i < to; ++i) cells[i - from] = &prefetch_cells(key_of(i));
      for (std::size_t i = from; i < to; ++i) {
        Walk walk = walk_of(*cells[i - from], key_of(i));
        seen[i - from] = next_in(walk);
      }
      for (std::size_t i = from; i < to; ++i) {
        EntryPin pin(pin_if(seen[i - from], key_of(i)));
        take(i, pin || seen[i - from] == nullptr ? std::move(pin) : find(key_of(i)));
      }
    }
  }

  // Under the lock, when find() or find_each() found nothing: certain.
  EntryPin find_again(const EmbeddingKey& key) noexcept;

  // As find_surely(); the caller holds the shard's mutex in these.
  EntryPin find_locked(Shard& shard, const EmbeddingKey& key) noexcept {
    return EntryPin(find_in(*shard.current_.load(std::memory_order_relaxed), key));
  }
  void insert_locked(Shard& shard, const EmbeddingKey& key, const Entry& entry);

  // Takes the lock. Only the cell of this very entry goes, not one of a later entry of the key.
  void erase(const EmbeddingKey& key, const Entry& entry);

  // Calls `visit` with each live entry of the shard, pinned. Under the shard's mutex.
  void for_each(Shard& shard, const std::function<void(EntryPin)>& visit);
  // Cells in use, live or not; for tests at rest.
  std::size_t cells_used();

 private:
  static std::uint64_t hash_of(const EmbeddingKey& key) noexcept {
    return DigestHash{}(key.digest);
  }

  // The half of the hash by which a key's home is found; shards go by the other half.
  static std::uint32_t tag_of(const EmbeddingKey& key) noexcept {
    return static_cast<std::uint32_t>(hash_of(key));
  }
  static std::uint64_t cell_of(const EmbeddingKey& key, const Entry& entry) noexcept {
    return (std::uint64_t{tag_of(key)} << 32) | (entry.slot + 1);
  }
  std::unique_ptr<Shard::Cells> make_cells(std::size_t count);
  void grow(Shard& shard);
  static std::uint32_t tag_in(std::uint64_t cell) noexcept {
    return static_cast<std::uint32_t>(cell >> 32);
  }
  static PolicySlot slot_in(std::uint64_t cell) noexcept {
    return static_cast<PolicySlot>(cell) - 1;
  }
  // Where a lookup stands among the cells.
  struct Walk {
    const CellArena::Cell* cells;
    std::size_t mask;
    std::size_t at;
    std::size_t last;  // a walk that races with writers may miss the end; it is at most once around
    std::uint32_t tag;
  };
  static Walk walk_of(const Shard::Cells& cells, const EmbeddingKey& key) noexcept {
    const std::uint32_t tag = tag_of(key);
    return {cells.cells, cells.mask, tag, tag + cells.mask, tag};
  }
  const Shard::Cells& prefetch_cells(const EmbeddingKey& key) noexcept {
    const Shard::Cells& cells = *shard_of(key).current_.load(std::memory_order_acquire);
    __builtin_prefetch(&cells.cells[tag_of(key) & cells.mask]);
    return cells;
  }
  // The next entry that may be the key's, on its way into the cache; nullptr at the end.
  [[gnu::always_inline]] Entry* next_in(Walk& walk) const noexcept {
    for (; walk.at <= walk.last; ++walk.at) {
      const std::uint64_t cell = walk.cells[walk.at & walk.mask].load(std::memory_order_acquire);
      if (cell == 0) return nullptr;
      if (tag_in(cell) != walk.tag) continue;
      ++walk.at;
      Entry& entry = slab_[slot_in(cell)];
      // All that a hit touches at once: what it pins, what it views, what it tells the policy.
      prefetch_for_write(&entry);
      __builtin_prefetch(&entry.runs);
      policy_.prefetch(slot_in(cell));
      return &entry;
    }
    return nullptr;
  }
  // `entry` if it is live and the key's, pinned for the caller.
  static Entry* pin_if(Entry* entry, const EmbeddingKey& key) noexcept {
    if (entry == nullptr || !entry->try_pin()) return nullptr;
    if (entry->has_key(key)) return entry;
    entry->unpin();
    return nullptr;
  }
  // Its pin is the caller's. Becomes a part of the hit path: as a call it would save and restore
  // half of the registers.
  [[gnu::always_inline]] Entry* find_in(const Shard::Cells& cells,
                                        const EmbeddingKey& key) const noexcept {
    Walk walk = walk_of(cells, key);
    while (Entry* const entry = next_in(walk)) {
      if (pin_if(entry, key) != nullptr) return entry;
    }
    return nullptr;
  }

  // Lookups whose waits overlap; fewer overlap less, more gave nothing (bench_controller).
  static constexpr std::size_t together = 16;

  const EntrySlab& slab_;
  const EvictionPolicy& policy_;
  CellArena arena_;
  std::vector<Shard> shards_;
};

}  // namespace vitrove
