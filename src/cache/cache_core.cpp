#include "cache/cache_core.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

namespace vitrove {
namespace {

// Looking at the whole arena costs a fraction of copying this share of it.
constexpr std::uint64_t large_share = 64;
// Plans may be overtaken by a pin; then another is made.
constexpr int max_plans = 3;

PayloadNeed need_of(std::uint64_t payload_bytes, std::uint64_t row_bytes) {
  return {payload_bytes / row_bytes, row_bytes, payload_bytes % row_bytes};
}

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(std::string("cache: ") + what);
}

}  // namespace

CacheCore::CacheCore(const ControllerOptions& options,
                     std::vector<std::shared_ptr<EmbeddingStore>> stores)
    : enable_eviction_(options.enable_eviction),
      max_eviction_batch_(std::max(1U, options.max_eviction_batch)),
      stores_(std::move(stores)),
      pool_(options.pool),
      policy_(make_eviction_policy(options.eviction_policy, options.modality_shares,
                                   pool_.total_pages() * pool_.page_bytes())) {
  for (const auto& store : stores_) {
    store->register_shared_buffer(pool_.arena(), pool_.memfd());
  }
}

CacheCore::~CacheCore() {
  for (const auto& store : stores_) store->unregister_buffer(pool_.arena());
}

// --- space ---

std::optional<PageRuns> CacheCore::allocate(std::uint64_t payload_bytes, std::uint64_t row_bytes,
                                            std::optional<Modality> modality) {
  const PayloadNeed need = need_of(payload_bytes, row_bytes);
  if (need.rows == 0 || !pool_.can_ever_fit(need.rows, need.row_bytes, need.tail_bytes)) {
    return std::nullopt;
  }
  if (auto runs = allocate_free(need)) return runs;
  if (!enable_eviction_) return allocate_free(need, PagePool::any_number);

  const std::uint64_t page = pool_.page_bytes();
  const RoomWanted wanted{modality, (need.bytes() + page - 1) / page * page};
  std::unique_lock eviction(eviction_mutex_);
  const std::uint64_t free = pool_.free_pages() * page;
  if (wanted.bytes > free && wanted.bytes - free > policy_->bytes_that_go_for(wanted)) {
    return std::nullopt;  // nobody goes in vain
  }
  if (need.row_bytes > page) return allocate_by_place(need, wanted, eviction);
  const bool large = need.bytes() * large_share >= pool_.total_pages() * page;
  if (large && !plan(need, wanted)) return std::nullopt;
  return allocate_by_policy(need, wanted, eviction);
}

std::optional<PageRuns> CacheCore::allocate_free(const PayloadNeed& need, std::size_t max_runs) {
  return pool_.allocate(need.rows, need.row_bytes, need.tail_bytes, max_runs);
}

std::optional<PageRuns> CacheCore::allocate_by_policy(const PayloadNeed& need,
                                                      const RoomWanted& wanted,
                                                      std::unique_lock<std::mutex>& eviction) {
  // More than this in vain means that the pages that go lie too far apart, or that somebody else
  // takes them.
  const std::uint64_t enough = 2 * (need.bytes() / pool_.page_bytes() + 1);
  std::uint64_t freed = 0;
  std::uint32_t in_batch = 0;
  while (freed < enough) {
    if (auto runs = allocate_free(need)) return runs;
    const auto pages = evict_next(wanted);
    if (!pages) return allocate_free(need, PagePool::any_number);
    freed += *pages;
    lend_turn(eviction, ++in_batch);
  }
  return allocate_by_place(need, wanted, eviction);
}

std::optional<PageRuns> CacheCore::allocate_by_place(const PayloadNeed& need,
                                                     const RoomWanted& wanted,
                                                     std::unique_lock<std::mutex>& eviction) {
  std::uint32_t in_batch = 0;
  for (int plans = 0; plans < max_plans; ++plans) {
    if (auto runs = allocate_free(need)) return runs;
    const auto owners = plan(need, wanted);
    if (!owners) break;
    for (const std::uint32_t owner : *owners) {
      // What went before may have taken its modality down to its share.
      if (policy_->may_go_for(owner, wanted) && slab_[owner].try_evict()) {
        evict(slab_[owner]);
        lend_turn(eviction, ++in_batch);
      }
    }
    // The plan has the fewest runs that there can be.
    if (auto runs = allocate_free(need, PagePool::any_number)) return runs;
  }
  return allocate_free(need, PagePool::any_number);
}

std::optional<std::vector<std::uint32_t>> CacheCore::plan(const PayloadNeed& need,
                                                          const RoomWanted& wanted) {
  const auto pages = static_cast<std::uint32_t>(pool_.total_pages());
  const std::vector<PageBlock> blocks = pool_.blocks_around({0, 1}, pages);
  std::vector<PolicySlot> candidates;
  auto owners = plan_eviction(blocks, need, pool_.page_bytes(), [&](std::uint32_t owner) {
    if (!slab_[owner].looks_evictable() || !policy_->may_go_for(owner, wanted)) return false;
    candidates.push_back(owner);
    return true;
  });
  if (!owners || policy_->that_stay(*owners, wanted).empty()) return owners;

  // Each may go, but not all of them: another plan, with those that can go together.
  std::ranges::sort(candidates);
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  const std::vector<PolicySlot> stay = policy_->that_stay(candidates, wanted);
  std::vector<PolicySlot> go;
  std::ranges::set_difference(candidates, stay, std::back_inserter(go));
  return plan_eviction(blocks, need, pool_.page_bytes(),
                       [&](std::uint32_t owner) { return std::ranges::binary_search(go, owner); });
}

void CacheCore::lend_turn(std::unique_lock<std::mutex>& eviction, std::uint32_t& evicted) const {
  if (evicted < max_eviction_batch_) return;
  evicted = 0;
  eviction.unlock();
  eviction.lock();
}

std::optional<std::uint32_t> CacheCore::evict_next(const RoomWanted& wanted) {
  const auto victim =
      policy_->next_victim_for(wanted, [this](PolicySlot slot) { return slab_[slot].try_evict(); });
  if (!victim) return std::nullopt;
  Entry& entry = slab_[*victim];
  const std::uint32_t pages = entry.pages_held.load(relaxed);
  evict(entry);
  return pages;
}

void CacheCore::evict(Entry& entry) {
  policy_->on_erase(entry.slot);
  drops_[static_cast<std::size_t>(DropReason::space)].fetch_add(1, relaxed);
  unmap(entry);
}

Uncached CacheCore::why_uncached(std::uint64_t payload_bytes, std::uint64_t row_bytes) const {
  const PayloadNeed need = need_of(payload_bytes, row_bytes);
  return pool_.can_ever_fit(need.rows, need.row_bytes, need.tail_bytes) ? Uncached::no_space
                                                                        : Uncached::too_large;
}

// --- entries ---

EntryPin CacheCore::make_entry(const ValueHeader& header, EntrySide side) {
  auto details = std::make_unique<EntryDetails>();
  details->header = header;
  details->side = std::move(side);
  Entry& entry = slab_.take();
  entry.core = this;
  entry.details = std::move(details);
  entry.pooled = false;
  entry.group = groups_.number_of(header.modality, header.model_fingerprint);
  entry.hits.store(0, relaxed);
  entry.begin_private();
  return EntryPin(&entry);
}

EntryPin CacheCore::make_pooled(const ValueHeader& header, EntrySide side, PageRuns pages) {
  PageLease lease(pool_, std::move(pages));  // before anything that can fail
  std::vector<std::span<const std::byte>> rows;
  for (const auto& segment : lease.runs().segments) {
    const auto bytes = std::as_const(pool_).segment_bytes(segment);
    rows.push_back(bytes.first(segment.rows * header.row_bytes()));
  }
  EntryPin entry = make_entry(header, std::move(side));
  pool_.set_owner(lease.runs(), entry->slot);
  entry->details->pages = lease.take();
  entry->details->may_go_live.store(true, relaxed);
  entry->describe(std::move(rows));
  entry->pooled = true;
  entry->pages_held.store(static_cast<std::uint32_t>(entry->details->pages.pages()), relaxed);
  payload_bytes_.fetch_add(header.payload_bytes(), relaxed);
  return entry;
}

EntryPin CacheCore::make_uncached(const ValueHeader& header, EntrySide side,
                                  std::vector<std::byte> rows, Uncached why) {
  uncached_[static_cast<std::size_t>(why)].fetch_add(1, relaxed);
  EntryPin entry = make_entry(header, std::move(side));
  entry->details->heap = std::move(rows);
  entry->describe({entry->details->heap});
  return entry;
}

EntryPin CacheCore::make_detached(const Entry& entry) {
  std::vector<std::byte> rows;
  rows.reserve(entry.payload_bytes());
  for (const auto& run : entry.runs) rows.insert(rows.end(), run.begin(), run.end());
  EntryPin copy = make_entry(entry.details->header, entry.details->side);
  copy->details->heap = std::move(rows);
  copy->describe({copy->details->heap});
  return copy;
}

void CacheCore::admit(Entry& entry) {
  PolicyItem item;
  item.key_hash = DigestHash{}(entry.key.digest);
  item.bytes = entry.pages_held.load(relaxed) * pool_.page_bytes();
  item.cost_us = entry.details->header.encode_cost_us;
  item.modality = entry.modality;
  std::lock_guard lock(eviction_mutex_);
  policy_->on_insert(entry.slot, item);
}

void CacheCore::retract(Entry& entry) {
  std::lock_guard lock(eviction_mutex_);
  policy_->on_erase(entry.slot);
}

void CacheCore::go_live_locked(EntryTable::Shard& shard, const EmbeddingKey& key, Entry& entry) {
  entry.add_key(key);  // never refused: the list is closed only after a life
  table_.insert_locked(shard, key, entry);
  entries_ready_.fetch_add(1, relaxed);
  entry.go_live();
}

bool CacheCore::drop(Entry& entry, DropReason reason) {
  if (!entry.drop()) return false;
  drops_[static_cast<std::size_t>(reason)].fetch_add(1, relaxed);
  retract(entry);
  unmap(entry);
  return true;
}

// From dropped to the table's count given back. The cells go first: an entry that is free is found
// through none. Needs no memory: an entry that was dropped and not unmapped would be lost.
void CacheCore::unmap(Entry& entry) noexcept {
  entry.close_keys();
  table_.erase(entry.key, entry);
  for (const auto& alias : entry.details->aliases) table_.erase(alias->key, entry);
  entries_ready_.fetch_sub(1, relaxed);
  entry.unpin();
}

void CacheCore::free_entry(Entry& entry) noexcept {
  const auto details = std::move(entry.details);
  if (entry.pooled) {
    payload_bytes_.fetch_sub(details->header.payload_bytes(), relaxed);
    entry.pages_held.store(0, relaxed);
    pool_.release(details->pages);
  }
  slab_.give_back(entry);
}

// --- counters ---

void CacheCore::count_reject(Reject reason) noexcept {
  rejects_[static_cast<std::size_t>(reason)].fetch_add(1, relaxed);
}

std::vector<ModelLookups> CacheCore::model_lookups() const {
  std::vector<ModelLookups> lines;
  for (std::size_t number = 0; number < groups_.count(); ++number) {
    const LookupGroups::Group& group = groups_[number];
    lines.push_back({group.modality, group.model, lookups_.sum(number), lookups_.saved_us(number)});
  }
  return lines;
}

void CacheCore::add_stats(ControllerStats& stats) const {
  for (const ModelLookups& line : model_lookups()) {
    stats.lookups[static_cast<std::size_t>(line.modality)] += line.lookups;
    stats.saved_us += line.saved_us;
  }
  stats.entries_ready = entries_ready_.load(relaxed);
  stats.pool_bytes = pool_.total_pages() * pool_.page_bytes();
  stats.payload_bytes = payload_bytes_.load(relaxed);
  stats.bytes_free = pool_.free_pages() * pool_.page_bytes();
  for (PolicySlot slot = 0; slot < slab_.reach(); ++slot) {
    const Entry& entry = slab_[slot];
    if (entry.pins() > 0) stats.bytes_pinned += entry.pages_held.load(relaxed) * pool_.page_bytes();
  }
  const auto drops = [&](DropReason reason) {
    return drops_[static_cast<std::size_t>(reason)].load(relaxed);
  };
  stats.evictions_space = drops(DropReason::space);
  stats.evictions_flush = drops(DropReason::flush);
  stats.evictions_removed = drops(DropReason::removed);
  stats.uncached_too_large = uncached_[static_cast<std::size_t>(Uncached::too_large)].load(relaxed);
  stats.uncached_no_space = uncached_[static_cast<std::size_t>(Uncached::no_space)].load(relaxed);
  for (std::size_t reason = 1; reason < reject_count; ++reason) {
    stats.rejected.emplace_back(to_string(static_cast<Reject>(reason)),
                                rejects_[reason].load(relaxed));
  }
  stats.rejected.emplace_back("dangling_alias", dangling_aliases_.load(relaxed));
}

void CacheCore::check_invariants() {
  pool_.check_invariants();
  std::uint64_t live = 0;
  std::uint64_t keys = 0;
  std::uint64_t pages = 0;
  std::uint64_t payload = 0;
  for (PolicySlot slot = 0; slot < slab_.reach(); ++slot) {
    Entry& entry = slab_[slot];
    if (entry.is_free()) continue;
    require(entry.pins() == 0, "an entry is still pinned");
    require(!entry.is_dropped(), "a dropped entry was not freed");
    ++live;
    pages += entry.details->pages.pages();
    payload += entry.details->header.payload_bytes();
    std::vector<EmbeddingKey> names{entry.key};
    for (const auto& alias : entry.details->aliases) names.push_back(alias->key);
    for (const EmbeddingKey& name : names) {
      if (table_.find(name).get() == &entry) ++keys;
    }
  }
  require(live == entries_ready_.load(), "the number of READY entries is wrong");
  require(keys == table_.cells_used(), "a cell of the table leads to no entry");
  require(payload == payload_bytes_.load(), "the payload gauge is wrong");
  require(pages + pool_.free_pages() == pool_.total_pages(), "pages are lost");
  require(keys >= live, "an entry cannot be found");
}

}  // namespace vitrove
