// Removing, flushing, counting: what operators do.
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "cache/controller_impl.h"

namespace vitrove {
namespace {

using Clock = std::chrono::steady_clock;
using Impl = EmbeddingCacheController::Impl;

constexpr std::size_t removal_batch = 256;
constexpr std::chrono::seconds rest_patience{30};

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

// Removed keys, or nothing when the store failed at all of them.
std::optional<std::uint64_t> remove_keys(Tier& tier, std::span<const EmbeddingKey> keys,
                                         const StoreContext& context) {
  const auto start = Clock::now();
  const auto results = tier.remove(keys, context);
  tier.removes().record(results, 0, Clock::now() - start);
  const auto removed = std::ranges::count_if(results, &StoreResult::ok);
  const bool none_answered = std::ranges::none_of(results, [](const StoreResult& result) {
    return result.ok() || result.status == StoreStatus::absent;
  });
  if (!keys.empty() && none_answered) return std::nullopt;
  return static_cast<std::uint64_t>(removed);
}

bool was_written_by(const ListedValue& value, const std::optional<Digest256>& model) {
  if (!model) return true;
  ValueHeader header;
  return value.header && parse_header(*value.header, value.size, header) == Reject::none &&
         header.model_fingerprint == *model;
}

std::optional<std::uint64_t> list_and_remove(Tier& tier, const std::optional<Digest256>& model,
                                             const StoreContext& context) {
  std::vector<EmbeddingKey> keys;
  const StoreResult listed = tier.list(
      {.with_header = model.has_value()},
      [&](const ListedValue& value) {
        if (was_written_by(value, model)) {
          keys.push_back(value.key);
        }
        return true;
      },
      context);
  if (!listed.ok()) return std::nullopt;
  std::uint64_t removed = 0;
  for (std::size_t first = 0; first < keys.size(); first += removal_batch) {
    const auto batch = std::span(keys).subspan(first, std::min(removal_batch, keys.size() - first));
    removed += remove_keys(tier, batch, context).value_or(0);
  }
  return removed;
}

}  // namespace

// --- removing one key ---

FlushReport Impl::remove(const EmbeddingKey& key, const std::optional<Digest256>& tenant,
                         const RequestContext& context) {
  FlushReport report;
  report.tiers.push_back({"pool", remove_from_pool(key, tenant)});
  const auto concerned = [key, tenant](const PutValue& value) {
    return (value.header.key == key || value.stored_under == key) &&
           (!tenant || value.header.tenant == *tenant);
  };
  tiers.revoke(concerned);
  for (std::size_t number = 0; number < tiers.count(); ++number) {
    const auto deadline = std::min(context.deadline, Clock::now() + options.put_timeout);
    tiers.puts(number).wait_gone(concerned, deadline);
    std::optional<std::uint64_t> removed = 0;
    if (!tenant || tier_has(number, key, *tenant, context)) {
      removed = remove_from_tier(number, key, context);
    }
    report.tiers.push_back({tiers.tier(number).name(), removed});
  }
  return report;
}

std::uint64_t Impl::remove_from_pool(const EmbeddingKey& key,
                                     const std::optional<Digest256>& tenant) {
  board.detach(key, tenant);
  const EntryPin entry = find_ready(key);
  if (!entry || (tenant && entry->details->header.tenant != *tenant)) return 0;
  return core->drop(*entry, DropReason::removed) ? 1 : 0;
}

// A stored value tells whose it is only when it is read.
bool Impl::tier_has(std::size_t number, const EmbeddingKey& key, const Digest256& tenant,
                    const RequestContext& context) {
  StoreLoader loader(core, tiers.reads().subspan(number, 1), options.store_timeout);
  LoadItem item;
  item.wanted = {key, std::nullopt, tenant};
  LookupBudget time = budget(context);
  loader.load({&item, 1}, time, context, [](std::size_t, LoadedValue) {});
  return item.found;
}

std::optional<std::uint64_t> Impl::remove_from_tier(std::size_t number, const EmbeddingKey& key,
                                                    const RequestContext& context) {
  const auto tier = tiers.reads()[number].tier;
  if (!tier->capabilities().can_remove) return std::nullopt;
  const auto removed = std::make_shared<std::optional<std::uint64_t>>();
  const auto deadline = std::min(context.deadline, Clock::now() + options.put_timeout);
  const bool back = run_on_lane(tiers.puts(number).lane(), deadline, context.cancel,
                                [tier, key, removed](const StoreContext& store_context) {
                                  *removed = remove_keys(*tier, {&key, 1}, store_context);
                                });
  return back ? *removed : std::nullopt;
}

// --- flushing ---

FlushReport Impl::flush(FlushScope scope, const std::optional<Digest256>& model,
                        const RequestContext& context) {
  core->flushes().record(scope, model);
  FlushReport report;
  // Also when the pool keeps what it has: having held each shard's lock after the record makes
  // every later publication see it (flush_log.h).
  const std::uint64_t dropped = flush_pool(model, scope != FlushScope::store);
  if (scope != FlushScope::store) report.tiers.push_back({"pool", dropped});
  if (scope == FlushScope::local) return report;

  tiers.revoke([model](const PutValue& value) {
    return !model || value.header.model_fingerprint == *model;
  });
  for (std::size_t number = 0; number < tiers.count(); ++number) {
    report.tiers.push_back({tiers.tier(number).name(), flush_tier(number, model, context)});
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

std::optional<std::uint64_t> Impl::flush_tier(std::size_t number,
                                              const std::optional<Digest256>& model,
                                              const RequestContext& context) {
  const auto tier = tiers.reads()[number].tier;
  const StoreCapabilities can = tier->capabilities();
  if (!can.can_list || !can.can_remove) return std::nullopt;
  const auto deadline = std::min(context.deadline, Clock::now() + options.put_timeout);
  tiers.puts(number).wait_gone(
      [model](const PutValue& value) { return !model || value.header.model_fingerprint == *model; },
      deadline);
  const auto removed = std::make_shared<std::optional<std::uint64_t>>();
  const bool back = run_on_lane(tiers.puts(number).lane(), deadline, context.cancel,
                                [tier, model, removed](const StoreContext& store_context) {
                                  *removed = list_and_remove(*tier, model, store_context);
                                });
  return back ? *removed : std::nullopt;
}

// --- counting ---

ControllerStats Impl::stats() const {
  ControllerStats stats;
  core->add_stats(stats);
  stats.entries_filling = board.under_way();
  stats.bytes_used = stats.pool_bytes - stats.bytes_free;
  stats.bytes_quarantined = tiers.quarantined_bytes();
  stats.puts_dropped = tiers.puts_dropped();
  stats.stores = tiers.stats();
  return stats;
}

void Impl::check_invariants() {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw std::logic_error(std::string("cache: ") + what);
  };
  require(tiers.wait_idle(Clock::now() + rest_patience), "a store call is still running");
  require(board.under_way() == 0, "a fill is still under way");
  require(core->pool().staging_pages_free() == options.pool.staging_pages, "staging is lost");
  require(core->pool().header_slots_free() == options.pool.header_slots, "header slots are lost");
  core->check_invariants();
}

}  // namespace vitrove
