#include "cache/entry_table.h"

namespace vitrove {
namespace {

constexpr std::size_t first_cells = 16;

}  // namespace

EntryTable::EntryTable(const EntrySlab& slab, const EvictionPolicy& policy)
    : slab_(slab), policy_(policy), shards_(std::size_t{1} << shard_bits) {
  for (Shard& shard : shards_) shard.use(make_cells(first_cells));
}

std::unique_ptr<EntryTable::Shard::Cells> EntryTable::make_cells(std::size_t count) {
  return std::make_unique<Shard::Cells>(count - 1, arena_.take(count).data());
}

EntryPin EntryTable::find_again(const EmbeddingKey& key) noexcept {
  Shard& shard = shard_of(key);
  std::lock_guard lock(shard.mutex);
  return find_locked(shard, key);
}

void EntryTable::Shard::place(Cells& cells, std::uint64_t cell) noexcept {
  std::size_t at = tag_in(cell) & cells.mask;
  while (cells.cells[at].load(std::memory_order_relaxed) != 0) at = (at + 1) & cells.mask;
  cells.cells[at].store(cell, std::memory_order_release);
}

void EntryTable::Shard::use(std::unique_ptr<Cells> cells) {
  arrays_.push_back(std::move(cells));
  current_.store(arrays_.back().get(), std::memory_order_release);
}

void EntryTable::grow(Shard& shard) {
  const Shard::Cells& old = *shard.current_.load(std::memory_order_relaxed);
  auto larger = make_cells((old.mask + 1) * 2);
  for (std::size_t at = 0; at <= old.mask; ++at) {
    const std::uint64_t cell = old.cells[at].load(std::memory_order_relaxed);
    if (cell != 0) Shard::place(*larger, cell);
  }
  shard.use(std::move(larger));
}

void EntryTable::insert_locked(Shard& shard, const EmbeddingKey& key, const Entry& entry) {
  const std::size_t capacity = shard.current_.load(std::memory_order_relaxed)->mask + 1;
  if ((shard.used_ + 1) * 3 > capacity * 2) grow(shard);
  Shard::place(*shard.current_.load(std::memory_order_relaxed), cell_of(key, entry));
  ++shard.used_;
}

void EntryTable::erase(const EmbeddingKey& key, const Entry& entry) {
  Shard& shard = shard_of(key);
  const std::uint64_t erased = cell_of(key, entry);
  std::lock_guard lock(shard.mutex);
  Shard::Cells& cells = *shard.current_.load(std::memory_order_relaxed);
  const auto cell_at = [&](std::size_t at) {
    return cells.cells[at].load(std::memory_order_relaxed);
  };

  std::size_t hole = tag_of(key) & cells.mask;
  while (cell_at(hole) != erased) {
    if (cell_at(hole) == 0) return;  // the key was never mapped to it
    hole = (hole + 1) & cells.mask;
  }
  // Fill the hole with the next cell whose home does not lie behind the hole, and go on with the
  // hole that it leaves.
  for (std::size_t at = (hole + 1) & cells.mask; cell_at(at) != 0; at = (at + 1) & cells.mask) {
    const std::size_t home = tag_in(cell_at(at)) & cells.mask;
    if (((at - home) & cells.mask) < ((at - hole) & cells.mask)) continue;
    cells.cells[hole].store(cell_at(at), std::memory_order_release);
    hole = at;
  }
  cells.cells[hole].store(0, std::memory_order_release);
  --shard.used_;
}

void EntryTable::for_each(Shard& shard, const std::function<void(EntryPin)>& visit) {
  const Shard::Cells& cells = *shard.current_.load(std::memory_order_relaxed);
  for (std::size_t at = 0; at <= cells.mask; ++at) {
    const std::uint64_t cell = cells.cells[at].load(std::memory_order_relaxed);
    if (cell == 0) continue;
    Entry& entry = slab_[slot_in(cell)];
    if (entry.try_pin()) visit(EntryPin(&entry));
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
