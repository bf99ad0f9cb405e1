#include "cache/store_loader.h"

#include <algorithm>
#include <utility>

#include "cache/store_trial.h"

namespace vitrove {
namespace {

constexpr std::uint64_t get_batch_bytes = std::uint64_t{4} << 20;
constexpr std::size_t get_batch_keys = 16;
// An alias is a header and a few dozen bytes; nothing smaller than a row is read into pages.
constexpr std::uint64_t max_alias_payload = 4096;

// How much of a payload may be what it claims to be.
enum class Plausible : std::uint8_t { embedding, alias, neither };

Plausible judge_size(const WantedValue& wanted, std::uint64_t payload) {
  if (payload == 0) return Plausible::neither;
  if (!wanted.expected) return Plausible::embedding;
  const ValueExpectation& expected = *wanted.expected;
  const std::uint64_t row_bytes = std::uint64_t{expected.dim} * element_size(expected.dtype);
  const std::uint64_t least = row_bytes * expected.rows.value_or(1);
  const bool too_long = expected.rows && payload > least + max_side_bytes;
  if (row_bytes > 0 && payload >= least && !too_long) return Plausible::embedding;
  return payload <= max_alias_payload ? Plausible::alias : Plausible::neither;
}

void reject(CacheCore& core, Tier& tier, const EmbeddingKey& key, Reject reason) {
  core.count_reject(reason);
  tier.mark_bad(key, Tier::Bad::not_believed);
}

bool may_read(Tier& tier, const LoadItem& item) {
  if (item.is_to_go) return true;
  const WantedValue& wanted = item.wanted;
  std::optional<Digest256> model;
  if (wanted.expected) model = wanted.expected->model_fingerprint;
  return !tier.is_avoided(wanted.key) && !tier.deletions().cover(wanted.key, model);
}

// Faults that are about one key may mean that its value there is spoilt; the others say nothing.
bool is_about_the_value(StoreStatus status) {
  return status == StoreStatus::io_error || status == StoreStatus::denied;
}

}  // namespace

// One tier, as one load sees it.
struct StoreLoader::Visit {
  std::size_t number;
  Tier& tier;
  Lane& lane;
  std::shared_ptr<CallGroup> group;
  std::span<LoadItem> items;
  std::vector<std::size_t> asked;  // numbers of items
  LookupBudget& budget;
  const RequestContext& context;
  const OnFound& on_found;
  CallSite site;
  // The verdict for the breaker: a proper answer to anything outweighs faults.
  bool answered = false;
  bool faulted = false;
};

void StoreLoader::load(std::span<LoadItem> items, LookupBudget& budget,
                       const RequestContext& context, const OnFound& on_found) {
  for (std::size_t number = 0; number < tiers_.size(); ++number) {
    if (budget.used_up() || context.cancel.stop_requested()) return;
    ReadTier& read = tiers_[number];
    auto group = std::make_shared<CallGroup>();
    Visit tour{number, *read.tier, *read.lane, group,    items,
               {},     budget,     context,    on_found, {core_, read.tier, group, context.req_id}};
    for (std::size_t i = 0; i < items.size(); ++i) {
      const LoadItem& item = items[i];
      if (item.found || item.first_tier > number) continue;
      if (may_read(*read.tier, item)) tour.asked.push_back(i);
    }
    if (tour.asked.empty()) continue;
    const auto admission = read.tier->admit(Tier::Direction::reads);
    if (admission == Breaker::Admission::refused) continue;
    if (admission == Breaker::Admission::trial) {
      begin_trial(tour);
      continue;
    }
    visit(tour);
    if (tour.answered || tour.faulted) {
      read.tier->report(Tier::Direction::reads, !tour.answered);
    }
  }
}

void StoreLoader::begin_trial(const Visit& tour) {
  std::vector<WantedValue> wanted;
  wanted.reserve(tour.asked.size());
  for (const std::size_t i : tour.asked) wanted.push_back(tour.items[i].wanted);
  auto trial = std::make_shared<StoreTrial>(core_, tour.site.tier, std::move(wanted),
                                            tour.site.trace_id, tour.budget);
  if (tour.lane.submit(std::move(trial)) == Lane::Submitted::stuck) {
    tour.tier.report(Tier::Direction::reads, true);
  }
}

void StoreLoader::visit(Visit& tour) {
  bool answered = false;
  const std::vector<StoreResult> sizes = ask_sizes(tour, answered);
  if (!answered) return;
  std::vector<std::size_t> landed;
  std::vector<GetCall::Item> values = land(tour, sizes, landed);
  if (values.empty()) {
    // That a store can say "absent" shows that it works; that it says "here" does not yet.
    tour.faulted = Tier::is_fault(sizes);
    tour.answered = !tour.faulted;
    return;
  }
  fetch(tour, std::move(values), landed);
}

std::vector<StoreResult> StoreLoader::ask_sizes(Visit& tour, bool& answered) {
  std::vector<EmbeddingKey> keys;
  keys.reserve(tour.asked.size());
  for (const std::size_t i : tour.asked) keys.push_back(tour.items[i].wanted.key);
  const auto call = std::make_shared<ExistCall>(tour.site, 0, std::move(keys));
  call->set_deadline(tour.budget.store_deadline());
  if (!submit(tour, call, tour.tier.exists())) return {};
  if (!tour.group->next(tour.budget.wait_deadline(), tour.context.cancel)) {
    give_up(tour, call);
    return {};
  }
  answered = call->results().size() == call->keys().size();
  return call->results();
}

std::vector<GetCall::Item> StoreLoader::land(Visit& tour, std::span<const StoreResult> sizes,
                                             std::vector<std::size_t>& landed) {
  std::vector<GetCall::Item> values;
  for (std::size_t i = 0; i < tour.asked.size(); ++i) {
    if (sizes[i].status == StoreStatus::absent) ++tour.items[tour.asked[i]].absent;
    if (Tier::is_of_its_key(sizes[i])) {
      tour.tier.mark_bad(tour.items[tour.asked[i]].wanted.key, Tier::Bad::unreadable);
    }
    if (!sizes[i].ok()) continue;
    const WantedValue& wanted = tour.items[tour.asked[i]].wanted;
    auto landing = find_landing(*core_, tour.tier, wanted, sizes[i].size);
    if (!landing) continue;
    values.push_back({wanted, std::move(*landing)});
    landed.push_back(tour.asked[i]);
  }
  return values;
}

void StoreLoader::fetch(Visit& tour, std::vector<GetCall::Item> values,
                        const std::vector<std::size_t>& landed) {
  struct Batch {
    std::shared_ptr<GetCall> call;
    std::span<const std::size_t> items;
    bool back = false;
  };
  for (const GetCall::Item& value : values) tour.budget.allow_for(value.landing.value_bytes());

  std::vector<Batch> batches;
  std::size_t open = 0;
  for (std::size_t first = 0; first < values.size();) {
    std::vector<GetCall::Item> batch;
    std::uint64_t bytes = 0;
    const std::size_t begin = first;
    while (first < values.size() && batch.size() < get_batch_keys && bytes < get_batch_bytes) {
      bytes += values[first].landing.value_bytes();
      batch.push_back(std::move(values[first++]));
    }
    const auto call = std::make_shared<GetCall>(tour.site, batches.size(), std::move(batch));
    call->set_deadline(tour.budget.store_deadline());
    const bool submitted = submit(tour, call, tour.tier.gets());
    batches.push_back({call, std::span(landed).subspan(begin, first - begin), !submitted});
    if (submitted) ++open;
  }

  while (open > 0) {
    const auto back = tour.group->next(tour.budget.wait_deadline(), tour.context.cancel);
    if (!back) break;
    --open;
    batches[*back].back = true;
    take_in(tour, *batches[*back].call, batches[*back].items);
  }
  for (const Batch& batch : batches) {
    if (!batch.back) give_up(tour, batch.call);
  }
}

void StoreLoader::take_in(Visit& tour, GetCall& call, std::span<const std::size_t> items) {
  if (call.results().size() != items.size()) return;
  (Tier::is_fault(call.results()) ? tour.faulted : tour.answered) = true;
  for (std::size_t i = 0; i < items.size(); ++i) {
    LoadItem& item = tour.items[items[i]];
    const StoreResult& result = call.results()[i];
    if (!result.ok()) {
      if (result.status == StoreStatus::absent) ++item.absent;
      if (is_about_the_value(result.status)) {
        tour.tier.mark_bad(item.wanted.key, Tier::Bad::unreadable);
      }
      continue;
    }
    if (call.values()[i].reject != Reject::none) {
      item.rejected = true;
      // Whoever asks by key alone may ask for what is another tenant's; nothing is wrong with it.
      const Reject reason = call.values()[i].reject;
      if (item.wanted.expected || reason != Reject::tenant) {
        reject(*core_, tour.tier, item.wanted.key, reason);
      }
      continue;
    }
    item.found = true;
    tour.tier.mark_readable(item.wanted.key);
    tour.on_found(items[i],
                  {std::move(call.values()[i]), std::move(*call.landings()[i]), tour.number});
    call.landings()[i].reset();
  }
}

bool StoreLoader::submit(Visit& tour, const std::shared_ptr<StoreCall>& call, OpStats& stats) {
  const Lane::Submitted submitted = tour.lane.submit(call);
  if (submitted == Lane::Submitted::yes) return true;
  if (submitted == Lane::Submitted::stuck) tour.faulted = true;
  stats.record_faults(call->keys().size(),
                      submitted == Lane::Submitted::stuck ? "stuck" : "queue_full");
  return false;
}

void StoreLoader::give_up(Visit& tour, const std::shared_ptr<StoreCall>& call) {
  const auto now = Clock::now();
  const bool never_started = tour.lane.withdraw(call);
  if (now < tour.budget.store_deadline()) {  // the request is over, not the store's time
    call->leave();
    return;
  }
  call->abandon(never_started ? "not_started" : "timeout");
  // A call that waited for a lane thread, or whose bytes still move, does not speak against it.
  if (!never_started && !call->moved_since(now - patience_)) tour.faulted = true;
}

std::optional<Landing> find_landing(CacheCore& core, Tier& tier, const WantedValue& wanted,
                                    std::uint64_t value_bytes) {
  if (value_bytes < value_header_size) {
    reject(core, tier, wanted.key, Reject::truncated);
    return std::nullopt;
  }
  const std::uint64_t payload = value_bytes - value_header_size;
  const Plausible plausible = judge_size(wanted, payload);
  if (plausible == Plausible::neither) {
    reject(core, tier, wanted.key, Reject::size);
    return std::nullopt;
  }
  if (plausible == Plausible::embedding) {
    // Without an expectation the runs are cut by pages, and cut anew when the rows are known.
    const std::uint64_t row_bytes =
        wanted.expected ? std::uint64_t{wanted.expected->dim} * element_size(wanted.expected->dtype)
                        : std::min(payload, core.pool().page_bytes());
    const auto modality = wanted.expected ? std::optional(wanted.expected->modality) : std::nullopt;
    if (auto landing = Landing::in_pages(core, payload, row_bytes, modality)) return landing;
  }
  auto landing = Landing::in_staging(core, payload);
  if (!landing) tier.gets().record_faults(1, "no_room");
  return landing;
}

EntryPin adopt(CacheCore& core, LoadedValue loaded) {
  const ValueHeader& header = loaded.value.header;
  Landing& landing = loaded.landing;
  EntrySide side{std::move(loaded.value.side), std::move(loaded.value.side_bytes)};
  if (landing.in_pages() && landing.runs().set_rows(header.rows, header.row_bytes())) {
    PageLease pages(core.pool(), landing.take_pages());
    core.pool().trim_to_rows(pages.runs(), header.row_bytes());
    return core.make_pooled(header, std::move(side), pages.take());
  }
  // The rows lie across runs, or there was no room for them with what follows them.
  std::vector<std::byte> rows = landing.copy_payload(header.payload_bytes());
  if (landing.in_pages()) core.pool().release(landing.take_pages());
  if (auto runs = core.allocate(header.payload_bytes(), header.row_bytes(), header.modality)) {
    PageLease pages(core.pool(), std::move(*runs));
    core.pool().copy_in(pages.runs(), 0, rows);
    return core.make_pooled(header, std::move(side), pages.take());
  }
  return core.make_uncached(header, std::move(side), std::move(rows),
                            core.why_uncached(header.payload_bytes(), header.row_bytes()));
}

}  // namespace vitrove
