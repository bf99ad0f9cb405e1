// What the controller, its tickets and its views share.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cache/claim_desk.h"
#include "cache/encode_costs.h"
#include "cache/feature_leads.h"
#include "cache/flight_board.h"
#include "cache/row_writer.h"
#include "cache/store_lookup.h"
#include "cache/store_tiers.h"

namespace vitrove {

struct EmbeddingCacheController::Impl {
  using Clock = std::chrono::steady_clock;

  Impl(ControllerOptions given, std::vector<std::shared_ptr<EmbeddingStore>> stores);
  ~Impl();

  // --- looking up (controller.cpp) ---
  std::vector<Acquired> acquire(std::span<const ValueExpectation> items,
                                const RequestContext& context);
  EntryPin find_ready(const EmbeddingKey& key);
  // Of each key the view of what is certainly there or not; `on_found` is told of the entries.
  template <typename OnFound>
  void view_each(std::span<const EmbeddingKey> keys, std::span<EmbeddingView> views,
                 OnFound on_found);
  std::vector<Acquired> hits_of(std::vector<EntryPin> ready);
  // In these an entry that is not what the item expects is taken away.
  std::vector<EntryPin> glance(std::span<const ValueExpectation> items);
  FlightBoard::Claim claim(const ValueExpectation& item);
  void drop_mismatch(const EntryPin& entry);
  // Here, so that it becomes a part of the hit path and not a call on it.
  void count_hit(Entry& entry, LookupResult result) {
    core->lookups().count_hit(entry.group, result, entry.cost_us);
    note_hit(entry);
  }
  void count_hit(Entry& entry, HitTally& tally) {
    tally.add(entry.group, entry.cost_us);
    note_hit(entry);
  }
  // What a hit tells the entry and the policy.
  void note_hit(Entry& entry) {
    if (!entry.pooled) return;
    entry.count_hit();
    core->policy().on_hit(entry.slot);
    if (options.put_after_uses > 1) note_use(entry);
  }
  LookupBudget budget(const RequestContext& context, Clock::duration spent = {}) const;
  std::optional<Hit> find(const EmbeddingKey& key, const std::optional<Digest256>& tenant,
                          const RequestContext& context);

  // --- filling (fill.cpp) ---
  // False while its puts wait for more uses.
  bool is_put_due(const Entry& entry) const noexcept;
  void note_use(Entry& entry);
  void put_with_aliases(Entry& entry);
  // A private entry with rows as they were encoded. Throws Error{internal}.
  EntryPin write_rows(const ValueExpectation& expected, const EncodedRows& encoded,
                      const Completion& ready);
  void note_encode_cost(const Digest256& model, std::chrono::microseconds cost);
  Clock::duration feature_wait_limit() const noexcept;

  // --- claims (cluster_claim.cpp) ---
  // Nothing when no put would follow.
  std::optional<std::size_t> claim_tier(const FillTicket::State& ticket) const;
  Clock::duration claim_wait_limit(const Digest256& model) const;

  // --- housekeeping (housekeeping.cpp) ---
  FlushReport remove(const EmbeddingKey& key, const std::optional<Digest256>& tenant,
                     const RequestContext& context);
  FlushReport flush(FlushScope scope, const std::optional<Digest256>& model,
                    const RequestContext& context);
  std::uint64_t flush_pool(const std::optional<Digest256>& model, bool drop);
  std::uint64_t remove_from_pool(const EmbeddingKey& key, const std::optional<Digest256>& tenant);
  // Nothing when the store does not say.
  std::optional<bool> tier_has(std::size_t number, const EmbeddingKey& key, const Digest256& tenant,
                               const RequestContext& context);
  std::uint64_t forget(const EmbeddingKey& key, const std::optional<Digest256>& tenant,
                       const std::function<bool(const PutValue&)>& concerned);
  bool wait_for_puts(std::size_t number, const std::function<bool(const PutValue&)>& which,
                     const RequestContext& context);
  FlushTier remove_from_tier(std::size_t number, const EmbeddingKey& key,
                             std::shared_ptr<PutQueue::Fence> fence, const RequestContext& context);
  std::shared_ptr<PutQueue::Fence> flush_fence(std::size_t number,
                                               const std::optional<Digest256>& model);
  FlushTier flush_tier(std::size_t number, const std::optional<Digest256>& model,
                       std::shared_ptr<PutQueue::Fence> fence, const RequestContext& context);
  void check_invariants();
  ControllerStats stats() const;

  const ControllerOptions options;
  const std::shared_ptr<CacheCore> core;
  FlightBoard board;
  StoreTiers tiers;
  StoreLookup lookup;
  ClaimDesk claims;
  FeatureLeads feature_leads;
  EncodeCosts encode_costs;
  std::atomic<std::int64_t> longest_encode_us{0};
};

struct FillTicket::State {
  using Impl = EmbeddingCacheController::Impl;

  State(Impl& impl_ref, FlightLead led, const ValueExpectation& expectation,
        std::chrono::steady_clock::duration time_spent)
      : impl(impl_ref), lead(std::move(led)), expected(expectation), spent(time_spent) {}
  ~State() { give_up(); }

  // The item's one lookup, by what became of it.
  void count_miss();
  void count_hit(Entry& entry, LookupResult result);
  // Leaves both flights to whoever follows.
  void give_up();
  void lead_feature(FlightLead led);
  void drop_feature();

  EntryPin serve(EntryPin entry);
  EntryPin publish(EntryPin entry);

  // Looks once more; on a hit the ticket is served.
  std::optional<ClaimResult> look_again(LookupBudget& budget, const RequestContext& context);
  ClaimResult wait_for_other(std::size_t tier, const RequestContext& context);

  Impl& impl;
  FlightLead lead;
  const ValueExpectation expected;
  std::chrono::steady_clock::duration spent;  // of the item's lookup budget

  std::optional<EmbeddingKey> feature;
  FlightLead feature_lead;
  std::optional<FeatureLeads::Holder> feature_holder;
  ClaimQuestion question;         // begin_claim() asked; claim() has not heard the answer
  std::size_t question_tier = 0;  // where it was asked last
  ClaimHold claim;
  bool counted = false;
};

struct JoinTicket::State {
  using Impl = EmbeddingCacheController::Impl;

  State(Impl& impl_ref, FlightSeat taken, const ValueExpectation& expectation,
        std::chrono::steady_clock::duration time_spent)
      : impl(impl_ref), seat(std::move(taken)), expected(expectation), spent(time_spent) {}
  ~State() { count_joined(); }

  void count_joined();

  Impl& impl;
  FlightSeat seat;
  const ValueExpectation expected;
  std::chrono::steady_clock::duration spent;
  bool counted = false;
};

// Makes what only the controller may make.
struct ControllerAccess {
  static EmbeddingView view(EntryPin entry) {
    EmbeddingView view;
    view.entry_ = entry.release();
    return view;
  }
  // Into a view that mostly is empty. Its assignment would be a call, of a tenth of a hit's
  // instructions.
  static void view_into(EmbeddingView& view, EntryPin entry) {
    if (view.entry_ != nullptr) view.release();
    view.entry_ = entry.release();
  }
  static FillTicket fill(EmbeddingCacheController::Impl& impl, FlightLead lead,
                         const ValueExpectation& expected,
                         std::chrono::steady_clock::duration spent) {
    return FillTicket(std::make_unique<FillTicket::State>(impl, std::move(lead), expected, spent));
  }
  static JoinTicket join(EmbeddingCacheController::Impl& impl, FlightSeat seat,
                         const ValueExpectation& expected,
                         std::chrono::steady_clock::duration spent) {
    return JoinTicket(std::make_unique<JoinTicket::State>(impl, std::move(seat), expected, spent));
  }
  static EmbeddingCacheController::Impl& impl(EmbeddingCacheController& controller) {
    return *controller.impl_;
  }
};

}  // namespace vitrove
