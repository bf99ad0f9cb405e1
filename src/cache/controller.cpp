#include <algorithm>
#include <utility>

#include "cache/controller_impl.h"

namespace vitrove {

std::string_view to_string(Source source) {
  switch (source) {
    case Source::local:
      return "local";
    case Source::joined:
      return "joined";
    case Source::store:
      return "store";
    case Source::encoded:
      break;
  }
  return "encoded";
}

std::string_view to_string(WritePolicy policy) {
  switch (policy) {
    case WritePolicy::through:
      return "through";
    case WritePolicy::behind:
      return "behind";
    case WritePolicy::never:
      break;
  }
  return "never";
}

using Impl = EmbeddingCacheController::Impl;

namespace {

// So that a deadline never overflows, and a lane always has a thread.
ControllerOptions within_reason(ControllerOptions options) {
  constexpr std::chrono::hours day{24};
  for (auto* time : {&options.store_timeout, &options.put_timeout, &options.shutdown_timeout}) {
    *time = std::clamp<std::chrono::microseconds>(*time, std::chrono::microseconds(0), day);
  }
  options.write_behind_delay = std::clamp<std::chrono::microseconds>(
      options.write_behind_delay, std::chrono::microseconds(0), 365 * day);
  options.get_threads = std::max(1U, options.get_threads);
  options.put_threads = std::max(1U, options.put_threads);
  options.put_after_uses = std::min(options.put_after_uses, EntryDetails::used_elsewhere - 1);
  options.claim_ttl =
      std::clamp<std::chrono::milliseconds>(options.claim_ttl, std::chrono::milliseconds(1), day);
  return options;
}

}  // namespace

Impl::Impl(ControllerOptions given, std::vector<std::shared_ptr<EmbeddingStore>> stores)
    : options(within_reason(std::move(given))),
      core(std::make_shared<CacheCore>(options, stores)),
      board(*core),
      tiers(core, options, stores),
      lookup(core, board, tiers, options.store_timeout),
      claims(tiers, options) {}

// Calls that hang are left behind, with the core they hold.
Impl::~Impl() {
  const auto bound = Clock::now() + options.shutdown_timeout;
  claims.shut_down(bound);
  tiers.shut_down(bound);
  claims.keeper().shut_down();  // after the puts that their claims wait for
}

EntryPin Impl::find_ready(const EmbeddingKey& key) { return core->table().find_surely(key); }

template <typename OnFound>
void Impl::view_each(std::span<const EmbeddingKey> keys, std::span<EmbeddingView> views,
                     OnFound on_found) {
  if (keys.size() != views.size()) {
    throw Error(ErrorCode::invalid_argument, "there have to be as many views as keys");
  }
  core->table().find_each(
      keys.size(), [&](std::size_t i) -> const EmbeddingKey& { return keys[i]; },
      [&](std::size_t i, EntryPin entry) {
        if (!entry) entry = core->table().find_again(keys[i]);
        if (entry) on_found(*entry);
        ControllerAccess::view_into(views[i], std::move(entry));
      });
}

// May miss an entry that is there; claim() looks again.
std::vector<EntryPin> Impl::glance(std::span<const ValueExpectation> items) {
  std::vector<EntryPin> ready(items.size());
  core->table().find_each(
      items.size(), [&](std::size_t i) -> const EmbeddingKey& { return items[i].key; },
      [&](std::size_t i, EntryPin entry) {
        if (entry && !entry->matches(items[i])) return drop_mismatch(entry);
        ready[i] = std::move(entry);
      });
  return ready;
}

std::vector<Acquired> Impl::hits_of(std::vector<EntryPin> ready) {
  std::vector<Acquired> answers;
  answers.reserve(ready.size());
  HitTally tally(core->lookups(), LookupResult::local);
  for (EntryPin& entry : ready) {
    count_hit(*entry, tally);
    answers.emplace_back(Hit{ControllerAccess::view(std::move(entry)), Source::local});
  }
  return answers;
}

void Impl::drop_mismatch(const EntryPin& entry) {
  core->count_reject(Reject::shape);
  core->drop(*entry, DropReason::removed);
}

FlightBoard::Claim Impl::claim(const ValueExpectation& item) {
  const FillOwner owner{item.model_fingerprint, item.tenant};
  for (;;) {
    auto claimed = board.claim(item.key, owner);
    auto* const ready = std::get_if<EntryPin>(&claimed);
    if (ready == nullptr || (*ready)->matches(item)) return claimed;
    drop_mismatch(*ready);
  }
}

LookupBudget Impl::budget(const RequestContext& context, Clock::duration spent) const {
  return {options.store_timeout, options.store_min_bandwidth, context.deadline, spent};
}

std::vector<Acquired> Impl::acquire(std::span<const ValueExpectation> items,
                                    const RequestContext& context) {
  // Every hit is pinned before anything is allocated for a miss. A key that stands twice follows
  // its own first occurrence.
  std::vector<EntryPin> ready = glance(items);
  if (std::ranges::all_of(ready, [](const EntryPin& entry) { return bool(entry); })) {
    return hits_of(std::move(ready));
  }
  std::vector<FlightSeat> seats(items.size());
  std::vector<bool> joins(items.size());
  std::vector<std::size_t> led;  // what the lookups are about
  std::vector<LookupItem> lookups;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (ready[i]) continue;
    auto claimed = claim(items[i]);
    if (auto* entry = std::get_if<EntryPin>(&claimed)) {
      ready[i] = std::move(*entry);
    } else if (auto* seat = std::get_if<FlightSeat>(&claimed)) {
      seats[i] = std::move(*seat);
      joins[i] = true;
    } else {
      led.push_back(i);
      lookups.push_back({std::get<FlightLead>(std::move(claimed)), WantedValue::of(items[i]), {}});
    }
  }

  LookupBudget time = budget(context);
  if (!tiers.empty() && !lookups.empty()) lookup.run(lookups, time, context);
  const auto spent = time.spent();

  std::vector<Acquired> answers;
  answers.reserve(items.size());
  auto next = lookups.begin();
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (ready[i]) {
      count_hit(*ready[i], LookupResult::local);
      answers.emplace_back(Hit{ControllerAccess::view(std::move(ready[i])), Source::local});
    } else if (joins[i]) {
      answers.emplace_back(ControllerAccess::join(*this, std::move(seats[i]), items[i], spent));
    } else if (LookupItem& item = *next++; item.entry) {
      const bool local = item.source == Source::local;
      count_hit(*item.entry, local ? LookupResult::local : LookupResult::store);
      answers.emplace_back(Hit{ControllerAccess::view(std::move(item.entry)), item.source});
    } else {
      answers.emplace_back(ControllerAccess::fill(*this, std::move(item.lead), items[i], spent));
    }
  }
  return answers;
}

std::optional<Hit> Impl::find(const EmbeddingKey& key, const std::optional<Digest256>& tenant,
                              const RequestContext& context) {
  const auto is_his = [&](const EntryPin& entry) {
    return !tenant || entry->details->header.tenant == *tenant;
  };
  if (EntryPin ready = find_ready(key)) {
    if (!is_his(ready)) return std::nullopt;
    return Hit{ControllerAccess::view(std::move(ready)), Source::local};
  }
  auto claimed = board.claim(key, {std::nullopt, tenant});
  if (auto* ready = std::get_if<EntryPin>(&claimed)) {
    if (!is_his(*ready)) return std::nullopt;
    return Hit{ControllerAccess::view(std::move(*ready)), Source::local};
  }
  // Without the lead (somebody may be encoding) what is found is not published.
  LookupItem item;
  item.wanted = {key, std::nullopt, tenant};
  if (auto* lead = std::get_if<FlightLead>(&claimed)) item.lead = std::move(*lead);
  LookupBudget time = budget(context);
  lookup.run({&item, 1}, time, context);
  if (!item.entry) return std::nullopt;
  return Hit{ControllerAccess::view(std::move(item.entry)), item.source};
}

// --- the public face ---

EmbeddingCacheController::EmbeddingCacheController(
    ControllerOptions options, std::vector<std::shared_ptr<EmbeddingStore>> stores)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(stores))) {}

EmbeddingCacheController::~EmbeddingCacheController() = default;

std::vector<Acquired> EmbeddingCacheController::acquire(std::span<const ValueExpectation> items,
                                                        const RequestContext& context) {
  return impl_->acquire(items, context);
}

EmbeddingView EmbeddingCacheController::try_get(const EmbeddingKey& key) {
  EntryPin entry = impl_->find_ready(key);
  if (entry) impl_->count_hit(*entry, LookupResult::local);
  return ControllerAccess::view(std::move(entry));
}

void EmbeddingCacheController::try_get(std::span<const EmbeddingKey> keys,
                                       std::span<EmbeddingView> views) {
  HitTally tally(impl_->core->lookups(), LookupResult::local);
  impl_->view_each(keys, views, [&](Entry& entry) { impl_->count_hit(entry, tally); });
}

EmbeddingView EmbeddingCacheController::peek(const EmbeddingKey& key) {
  return ControllerAccess::view(impl_->find_ready(key));
}

void EmbeddingCacheController::peek(std::span<const EmbeddingKey> keys,
                                    std::span<EmbeddingView> views) {
  impl_->view_each(keys, views, [](const Entry&) {});
}

void EmbeddingCacheController::count_hit(const EmbeddingView& view) {
  impl_->count_hit(*view.entry_, LookupResult::local);
}

std::optional<Hit> EmbeddingCacheController::find(const EmbeddingKey& key,
                                                  const std::optional<Digest256>& tenant,
                                                  const RequestContext& context) {
  return impl_->find(key, tenant, context);
}

FlushReport EmbeddingCacheController::remove(const EmbeddingKey& key,
                                             const std::optional<Digest256>& tenant,
                                             const RequestContext& context) {
  return impl_->remove(key, tenant, context);
}

FlushReport EmbeddingCacheController::flush(FlushScope scope, const std::optional<Digest256>& model,
                                            const RequestContext& context) {
  return impl_->flush(scope, model, context);
}

bool EmbeddingCacheController::wait_for_puts(std::chrono::steady_clock::time_point deadline) {
  return impl_->tiers.wait_for_puts(deadline);
}

ControllerStats EmbeddingCacheController::stats() const { return impl_->stats(); }

std::vector<ModelLookups> EmbeddingCacheController::model_lookups() const {
  return impl_->core->model_lookups();
}

PoolReport EmbeddingCacheController::inspect(std::size_t most_valued) const {
  return impl_->core->inspect(most_valued);
}

const PagePool& EmbeddingCacheController::pool() const { return impl_->core->pool(); }

std::vector<StoreStats> EmbeddingCacheController::store_health() const {
  std::vector<StoreStats> all = impl_->tiers.stats();
  for (std::size_t number = 0; number < all.size(); ++number) {
    all[number].health = impl_->tiers.tier(number).health();
  }
  return all;
}

void EmbeddingCacheController::check_invariants() const { impl_->check_invariants(); }

}  // namespace vitrove
