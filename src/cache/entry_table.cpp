#include "cache/entry_table.h"

namespace vitrove {
namespace {

constexpr std::size_t first_cells = 16;

}  // namespace

EntryTable::Shard::Shard() {
  arrays_.push_back(std::make_unique<Cells>(first_cells));
  current_.store(arrays_.back().get(), std::memory_order_release);
}

EntryPin EntryTable::Shard::find(const Cells& cells, const EmbeddingKey& key,
                                 std::uint64_t hash) noexcept {
  std::size_t at = hash & cells.mask;
  // A walk that races with writers may miss the end; it is at most once around.
  for (std::size_t steps = 0; steps <= cells.mask; ++steps, at = (at + 1) & cells.mask) {
    const Cell& cell = cells.cells[at];
    Entry* const entry = cell.entry.load(std::memory_order_acquire);
    if (entry == nullptr) return {};
    if (cell.hash.load(std::memory_order_relaxed) != hash || !entry->try_pin()) continue;
    EntryPin pin(entry);
    if (entry->has_key(key)) return pin;
  }
  return {};
}

void EntryTable::Shard::place(Cells& cells, std::uint64_t hash, Entry* entry) noexcept {
  std::size_t at = hash & cells.mask;
  while (cells.cells[at].entry.load(std::memory_order_relaxed) != nullptr) {
    at = (at + 1) & cells.mask;
  }
  cells.cells[at].hash.store(hash, std::memory_order_relaxed);
  cells.cells[at].entry.store(entry, std::memory_order_release);
}

void EntryTable::Shard::grow() {
  const Cells& old = *current_.load(std::memory_order_relaxed);
  auto larger = std::make_unique<Cells>((old.mask + 1) * 2);
  for (std::size_t at = 0; at <= old.mask; ++at) {
    const Cell& cell = old.cells[at];
    Entry* const entry = cell.entry.load(std::memory_order_relaxed);
    if (entry != nullptr) place(*larger, cell.hash.load(std::memory_order_relaxed), entry);
  }
  arrays_.push_back(std::move(larger));
  current_.store(arrays_.back().get(), std::memory_order_release);
}

void EntryTable::insert_locked(Shard& shard, const EmbeddingKey& key, Entry* entry) {
  const std::size_t capacity = shard.current_.load(std::memory_order_relaxed)->mask + 1;
  if ((shard.used_ + 1) * 3 > capacity * 2) shard.grow();
  Shard::place(*shard.current_.load(std::memory_order_relaxed), hash_of(key), entry);
  ++shard.used_;
}

void EntryTable::erase(const EmbeddingKey& key, const Entry* entry) {
  Shard& shard = shard_of(key);
  const std::uint64_t hash = hash_of(key);
  std::lock_guard lock(shard.mutex);
  Shard::Cells& cells = *shard.current_.load(std::memory_order_relaxed);
  const auto entry_at = [&](std::size_t at) {
    return cells.cells[at].entry.load(std::memory_order_relaxed);
  };
  const auto hash_at = [&](std::size_t at) {
    return cells.cells[at].hash.load(std::memory_order_relaxed);
  };

  std::size_t hole = hash & cells.mask;
  while (entry_at(hole) != entry || hash_at(hole) != hash) {
    if (entry_at(hole) == nullptr) return;  // the key was never mapped to it
    hole = (hole + 1) & cells.mask;
  }
  // Fill the hole with the next cell whose home does not lie behind the hole, and go on with the
  // hole that it leaves.
  for (std::size_t at = (hole + 1) & cells.mask; entry_at(at) != nullptr;
       at = (at + 1) & cells.mask) {
    const std::size_t home = hash_at(at) & cells.mask;
    if (((at - home) & cells.mask) < ((at - hole) & cells.mask)) continue;
    cells.cells[hole].hash.store(hash_at(at), std::memory_order_relaxed);
    cells.cells[hole].entry.store(entry_at(at), std::memory_order_release);
    hole = at;
  }
  cells.cells[hole].entry.store(nullptr, std::memory_order_release);
  --shard.used_;
}

void EntryTable::for_each(Shard& shard, const std::function<void(EntryPin)>& visit) {
  const Shard::Cells& cells = *shard.current_.load(std::memory_order_relaxed);
  for (std::size_t at = 0; at <= cells.mask; ++at) {
    Entry* const entry = cells.cells[at].entry.load(std::memory_order_relaxed);
    if (entry != nullptr && entry->try_pin()) visit(EntryPin(entry));
  }
}

std::size_t EntryTable::cells_used() {
  std::size_t used = 0;
  for (Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    used += shard.used_;
  }
  return used;
}

}  // namespace vitrove
