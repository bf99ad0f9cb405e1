// Removing, flushing, counting: what operators do.
#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <utility>

#include "cache/admin_call.h"
#include "cache/controller_impl.h"

namespace vitrove {
namespace {

using Clock = std::chrono::steady_clock;
using Impl = EmbeddingCacheController::Impl;

constexpr std::size_t removal_batch = 256;
constexpr std::chrono::seconds rest_patience{30};
// Of a caller who names no deadline.
constexpr std::chrono::hours flush_patience{24};

// Runs `call` on the tier's put lane; false when it did not come back in time. What `call` touches
// must be its own.
bool run_on_lane(Lane& lane, Clock::time_point deadline, const std::stop_token& cancel,
                 std::function<void(const StoreContext&)> call) {
  const auto group = std::make_shared<CallGroup>();
  const auto admin = std::make_shared<AdminCall>(group, std::move(call));
  admin->set_deadline(deadline);
  if (lane.submit(admin) != Lane::Submitted::yes) return false;
  if (group->next(deadline, cancel)) return true;
  lane.withdraw(admin);
  admin->cancel();
  return false;
}

bool is_gone(const StoreResult& result) {
  return result.ok() || result.status == StoreStatus::absent;
}

// A refusal is certain; whatever else went wrong, the store may have done it, or do it yet.
bool may_go_late(const StoreResult& result) {
  return !is_gone(result) && result.status != StoreStatus::denied;
}

// How far a flush or removal of a tier has come; the call may outlive who asked for it.
struct FlushProgress {
  std::atomic<std::uint64_t> removed{0};
  std::atomic<bool> complete{false};
};

// What to remove; an alias does not count.
struct FlushList {
  std::vector<EmbeddingKey> embeddings;
  std::vector<EmbeddingKey> aliases;

  void add(const ListedValue& value, const std::optional<Digest256>& model) {
    ValueHeader header;
    const bool is_readable =
        value.header && parse_header(*value.header, value.size, header) == Reject::none;
    if (model && (!is_readable || header.model_fingerprint != *model)) return;
    const bool is_alias = is_readable && header.kind == ValueKind::alias;
    (is_alias ? aliases : embeddings).push_back(value.key);
  }
};

// False when some may be left. What may go yet is not served for a while, and replaced by the next
// put; what the store refuses to remove stays as it is. `removed`, if given, is counted up.
bool remove_all(Tier& tier, std::span<const EmbeddingKey> keys, const StoreContext& context,
                std::atomic<std::uint64_t>* removed) {
  bool complete = true;
  for (std::size_t first = 0; first < keys.size(); first += removal_batch) {
    const auto batch = keys.subspan(first, std::min(removal_batch, keys.size() - first));
    const auto start = Clock::now();
    const auto results = tier.remove(batch, context);
    tier.removes().record(results, 0, Clock::now() - start);
    if (removed != nullptr) {
      *removed += static_cast<std::uint64_t>(std::ranges::count_if(results, &StoreResult::ok));
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      complete = complete && is_gone(results[i]);
      if (is_gone(results[i])) tier.mark_renewed(batch[i]);
      if (may_go_late(results[i])) tier.mark_bad(batch[i], Tier::Bad::not_believed);
    }
  }
  return complete;
}

// Also what an incomplete listing has shown goes.
void list_and_remove(Tier& tier, const std::optional<Digest256>& model, const StoreContext& context,
                     FlushProgress& progress) {
  FlushList found;
  StoreContext listing = context;
  const auto now = Clock::now();
  listing.deadline = now + (context.deadline - now) / 2;
  const StoreResult listed = tier.list(
      {.with_header = true},
      [&](const ListedValue& value) {
        found.add(value, model);
        return true;
      },
      listing);
  const bool embeddings_gone = remove_all(tier, found.embeddings, context, &progress.removed);
  const bool aliases_gone = remove_all(tier, found.aliases, context, nullptr);
  progress.complete = listed.ok() && embeddings_gone && aliases_gone;
}

// A delete of one key on its way to its store, with the fence that stands around it. One that was
// never made, for want of time, leaves what the pool and its callers take for gone: that is not
// read for a while, and makes way for the next put.
class KeyRemoval {
 public:
  KeyRemoval(std::shared_ptr<Tier> tier, const EmbeddingKey& key,
             std::shared_ptr<PutQueue::Fence> fence)
      : tier_(std::move(tier)), key_(key), fence_(std::move(fence)) {}
  KeyRemoval(const KeyRemoval&) = delete;
  KeyRemoval& operator=(const KeyRemoval&) = delete;
  // Before the fence goes.
  ~KeyRemoval() {
    if (was_made_) return;
    try {
      tier_->mark_bad(key_, Tier::Bad::not_believed);
    } catch (const std::bad_alloc&) {  // it is believed, then
    }
  }

  bool make(const StoreContext& context, std::atomic<std::uint64_t>& removed) {
    const bool is_complete = remove_all(*tier_, {&key_, 1}, context, &removed);
    was_made_ = true;
    return is_complete;
  }

 private:
  const std::shared_ptr<Tier> tier_;
  const EmbeddingKey key_;
  const std::shared_ptr<PutQueue::Fence> fence_;
  bool was_made_ = false;
};

}  // namespace

// --- removing one key ---

FlushReport Impl::remove(const EmbeddingKey& key, const std::optional<Digest256>& tenant,
                         const RequestContext& context) {
  const auto concerned = [key, tenant](const PutValue& value) {
    return (value.header.key == key || value.stored_under == key) &&
           (!tenant || value.header.tenant == *tenant);
  };
  FlushTier pool{"pool", 0};
  std::vector<std::shared_ptr<PutQueue::Fence>> fences(tiers.count());
  std::vector<std::optional<bool>> is_his(tiers.count());
  std::vector<bool> puts_gone(tiers.count());
  for (std::size_t number = 0; number < tiers.count(); ++number) {
    if (tenant) {
      // What is his is not known before it has been read, and then no put of it may be on its way.
      *pool.removed += forget(key, tenant, concerned);
      puts_gone[number] = wait_for_puts(number, concerned, context);
      is_his[number] = tier_has(number, key, *tenant, context);
      if (!is_his[number].value_or(false)) continue;
    }
    fences[number] = tiers.puts(number).fence({key, std::nullopt});
  }
  *pool.removed += forget(key, tenant, concerned);
  FlushReport report;
  report.tiers.push_back(pool);
  for (std::size_t number = 0; number < tiers.count(); ++number) {
    if (fences[number] == nullptr) {
      report.tiers.push_back(
          {tiers.tier(number).name(), 0, puts_gone[number] && is_his[number].has_value()});
      continue;
    }
    puts_gone[number] = wait_for_puts(number, concerned, context);
    report.tiers.push_back(remove_from_tier(number, key, std::move(fences[number]), context));
    report.tiers.back().complete = report.tiers.back().complete && puts_gone[number];
  }
  return report;
}

// In the pool and on its way to the stores.
std::uint64_t Impl::forget(const EmbeddingKey& key, const std::optional<Digest256>& tenant,
                           const std::function<bool(const PutValue&)>& concerned) {
  const std::uint64_t removed = remove_from_pool(key, tenant);
  tiers.revoke(concerned);
  claims.keeper().let_go([&](const ClaimKeeper::Claimed& claimed) { return claimed.key == key; });
  return removed;
}

bool Impl::wait_for_puts(std::size_t number, const std::function<bool(const PutValue&)>& which,
                         const RequestContext& context) {
  const auto deadline = std::min(context.deadline, Clock::now() + options.put_timeout);
  return tiers.puts(number).wait_gone(which, deadline);
}

std::uint64_t Impl::remove_from_pool(const EmbeddingKey& key,
                                     const std::optional<Digest256>& tenant) {
  board.detach(key, tenant);
  const EntryPin entry = find_ready(key);
  if (!entry || (tenant && entry->details->header.tenant != *tenant)) return 0;
  return core->drop(*entry, DropReason::removed) ? 1 : 0;
}

// A stored value tells whose it is only when it is read.
std::optional<bool> Impl::tier_has(std::size_t number, const EmbeddingKey& key,
                                   const Digest256& tenant, const RequestContext& context) {
  StoreLoader loader(core, tiers.reads().subspan(number, 1), options.store_timeout);
  LoadItem item;
  item.wanted = {key, std::nullopt, tenant};
  item.is_to_go = true;
  LookupBudget time = budget(context);
  loader.load({&item, 1}, time, context, [](std::size_t, LoadedValue) {});
  if (!item.found && !item.rejected && item.absent == 0) return std::nullopt;
  return item.found;
}

FlushTier Impl::remove_from_tier(std::size_t number, const EmbeddingKey& key,
                                 std::shared_ptr<PutQueue::Fence> fence,
                                 const RequestContext& context) {
  const auto tier = tiers.reads()[number].tier;
  FlushTier report{tier->name(), std::nullopt};
  if (!tier->capabilities().can_remove) return report;
  const auto progress = std::make_shared<FlushProgress>();
  const auto deadline = std::min(context.deadline, Clock::now() + options.put_timeout);
  auto removal = std::make_shared<KeyRemoval>(tier, key, std::move(fence));
  run_on_lane(tiers.puts(number).lane(), deadline, context.cancel,
              [progress, removal = std::move(removal)](const StoreContext& store_context) {
                progress->complete = removal->make(store_context, progress->removed);
              });
  report.removed = progress->removed.load();
  report.complete = progress->complete;
  return report;
}

// --- flushing ---

FlushReport Impl::flush(FlushScope scope, const std::optional<Digest256>& model,
                        const RequestContext& context) {
  const auto concerned = [model](const PutValue& value) {
    return !model || value.header.model_fingerprint == *model;
  };
  std::vector<std::shared_ptr<PutQueue::Fence>> fences(tiers.count());
  if (scope != FlushScope::local) {
    for (std::size_t number = 0; number < tiers.count(); ++number)
      fences[number] = flush_fence(number, model);
    // What is in a store's call as of now. It may end at any moment, and a store that cannot list
    // would keep it.
    tiers.revoke(concerned);
  }
  core->flushes().record(scope, model);
  FlushReport report;
  // Also when the pool keeps what it has: having held each shard's lock after the record makes
  // every later publication see it (flush_log.h).
  const std::uint64_t dropped = flush_pool(model, scope != FlushScope::store);
  if (scope != FlushScope::store) report.tiers.push_back({"pool", dropped});
  // The puts of what is being encoded still come.
  if (scope == FlushScope::local) return report;

  // What is being encoded will not be put: whoever asks from now on need not wait for it.
  claims.keeper().let_go(
      [&](const ClaimKeeper::Claimed& claimed) { return !model || claimed.model == *model; });

  tiers.revoke(concerned);  // what came meanwhile
  for (std::size_t number = 0; number < tiers.count(); ++number) {
    report.tiers.push_back(flush_tier(number, model, std::move(fences[number]), context));
  }
  return report;
}

std::uint64_t Impl::flush_pool(const std::optional<Digest256>& model, bool drop) {
  std::uint64_t dropped = 0;
  for (EntryTable::Shard& shard : core->table().shards()) {
    std::vector<EntryPin> entries;
    {
      std::lock_guard lock(shard.mutex);
      if (!drop) continue;
      core->table().for_each(shard, [&](EntryPin entry) {
        if (!model || entry->details->header.model_fingerprint == *model) {
          entries.push_back(std::move(entry));
        }
      });
    }
    for (const EntryPin& entry : entries) dropped += core->drop(*entry, DropReason::flush) ? 1 : 0;
  }
  return dropped;
}

// None where nothing can be flushed.
std::shared_ptr<PutQueue::Fence> Impl::flush_fence(std::size_t number,
                                                   const std::optional<Digest256>& model) {
  const StoreCapabilities can = tiers.tier(number).capabilities();
  if (!can.can_list || !can.can_remove) return nullptr;
  return tiers.puts(number).fence({std::nullopt, model});
}

FlushTier Impl::flush_tier(std::size_t number, const std::optional<Digest256>& model,
                           std::shared_ptr<PutQueue::Fence> fence, const RequestContext& context) {
  const auto tier = tiers.reads()[number].tier;
  FlushTier report{tier->name(), std::nullopt};
  if (fence == nullptr) return report;
  const bool puts_gone = wait_for_puts(
      number,
      [model](const PutValue& value) { return !model || value.header.model_fingerprint == *model; },
      context);
  const auto progress = std::make_shared<FlushProgress>();
  run_on_lane(tiers.puts(number).lane(), std::min(context.deadline, Clock::now() + flush_patience),
              context.cancel,
              [tier, model, progress, held = std::move(fence)](const StoreContext& store_context) {
                list_and_remove(*tier, model, store_context, *progress);
              });
  report.removed = progress->removed.load();
  report.complete = puts_gone && progress->complete;
  return report;
}

// --- counting ---

ControllerStats Impl::stats() const {
  ControllerStats stats;
  core->add_stats(stats);
  stats.entries_filling = board.under_way();
  stats.bytes_used = stats.pool_bytes - stats.bytes_free;
  stats.bytes_quarantined = tiers.quarantined_bytes();
  stats.puts_dropped = tiers.puts_dropped();
  stats.puts_skipped = tiers.puts_skipped();
  stats.claims = claims.stats();
  stats.stores = tiers.stats();
  return stats;
}

void Impl::check_invariants() {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw std::logic_error(std::string("cache: ") + what);
  };
  require(tiers.wait_idle(Clock::now() + rest_patience), "a store call is still running");
  require(board.under_way() == 0, "a fill is still under way");
  require(claims.wait_idle(Clock::now() + rest_patience), "a claim is still held");
  require(core->pool().staging_pages_free() == options.pool.staging_pages, "staging is lost");
  require(core->pool().header_slots_free() == options.pool.header_slots, "header slots are lost");
  core->check_invariants();
}

}  // namespace vitrove
