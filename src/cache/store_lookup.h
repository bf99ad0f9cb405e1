// StoreLookup: finds embeddings in the stores on behalf of flights: loads values, follows aliases,
// publishes what was found, and copies it to the nearer tiers.
//
// An alias is followed one level deep: to a READY entry under its target, or to the target's value
// in any tier. The lookup leads the target's flight meanwhile, if nobody is at it. A dangling alias
// is a miss of its tier only: farther ones are asked for the key itself, and the next put replaces
// it.
#pragma once

#include <span>
#include <vector>

#include "cache/flight_board.h"
#include "cache/store_tiers.h"

namespace vitrove {

struct LookupItem {
  FlightLead lead;  // may be empty: then nothing is published. Given away when found.
  WantedValue wanted;
  EntryPin entry;  // when found
  Source source = Source::store;
};

class StoreLookup {
 public:
  StoreLookup(const std::shared_ptr<CacheCore>& core, FlightBoard& board, StoreTiers& tiers,
              std::chrono::microseconds patience)
      : core_(*core), board_(board), tiers_(tiers), loader_(core, tiers.reads(), patience) {}

  void run(std::span<LookupItem> items, LookupBudget& budget, const RequestContext& context);

 private:
  struct FoundAlias {
    std::size_t item;
    EmbeddingKey target;
    Digest256 model;
    std::size_t tier;
  };
  struct Target;

  void take(LookupItem& item, LoadedValue loaded);
  // Serves the items whose alias leads somewhere.
  void follow(std::span<LookupItem> items, std::span<const FoundAlias> aliases,
              LookupBudget& budget, const RequestContext& context);
  static WantedValue wanted_target(const LookupItem& item, const EmbeddingKey& target);
  void load_targets(std::span<Target> targets, LookupBudget& budget, const RequestContext& context);
  void take_target(Target& target, LoadedValue loaded);
  void attach(LookupItem& item, const Target& target, std::size_t alias_tier);

  CacheCore& core_;
  FlightBoard& board_;
  StoreTiers& tiers_;
  StoreLoader loader_;
};

}  // namespace vitrove
