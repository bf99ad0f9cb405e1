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
  EntryPin find_again(const EmbeddingKey& key) noexcept;

  // Its pin is the caller's. Becomes a part of the hit path: as a call it would save and restore
  // half of the registers.
  [[gnu::always_inline]] Entry* find_in(const Shard::Cells& cells,
                                        const EmbeddingKey& key) const noexcept {
    const std::uint32_t tag = tag_of(key);
    const std::size_t mask = cells.mask;
    const CellArena::Cell* const first = cells.cells;
    // A walk that races with writers may miss the end; it is at most once around.
    for (std::size_t at = tag, last = at + mask; at <= last; ++at) {
      const std::uint64_t cell = first[at & mask].load(std::memory_order_acquire);
      if (cell == 0) return nullptr;
      if (tag_in(cell) != tag) continue;
      Entry& entry = slab_[slot_in(cell)];
      // All that a hit touches at once: what it pins, what it views, what it tells the policy.
      prefetch_for_write(&entry);
      __builtin_prefetch(&entry.runs);
      policy_.prefetch(slot_in(cell));
      if (!entry.try_pin()) continue;
      if (entry.has_key(key)) return &entry;
      entry.unpin();
    }
    return nullptr;
  }

  const EntrySlab& slab_;
  const EvictionPolicy& policy_;
  CellArena arena_;
  std::vector<Shard> shards_;
};

}  // namespace vitrove
