// StoreLoader: gets values out of the tiers, nearest first, into the arena, checked.
//
// A tier is visited at most once a load: one existence call for all keys gives the sizes, then the
// gets go in batches of a few MiB, so that they use several lane threads and one slow value delays
// few neighbours. A store that its breaker keeps everybody away from is not visited; when a trial
// is due, one is begun and not waited for (store_trial.h). Whatever goes wrong with a key makes it
// a key for the next tier, and in the end a miss; whatever is not back in time stays with its call.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cache/lane.h"
#include "cache/lookup_budget.h"
#include "cache/store_calls.h"

namespace vitrove {

struct LoadItem {
  WantedValue wanted;
  std::size_t first_tier = 0;  // nearer ones are not asked
  bool found = false;
  std::size_t absent = 0;  // tiers that said so
  bool rejected = false;   // there is something, and not what is wanted
  bool is_to_go = false;   // to be deleted: also what is fenced or not believed is read
};

struct LoadedValue {
  VerifiedValue value;  // not rejected
  Landing landing;
  std::size_t tier = 0;
};

// A tier and the lane of its gets.
struct ReadTier {
  std::shared_ptr<Tier> tier;
  std::unique_ptr<Lane> lane;
};

class StoreLoader {
 public:
  using Clock = LaneCall::Clock;
  // On the loading thread, as soon as the value is there. The item's number, and its value.
  using OnFound = std::function<void(std::size_t, LoadedValue)>;

  StoreLoader(std::shared_ptr<CacheCore> core, std::span<ReadTier> tiers,
              std::chrono::microseconds patience)
      : core_(std::move(core)), tiers_(tiers), patience_(patience) {}

  // No key stands twice among the items.
  void load(std::span<LoadItem> items, LookupBudget& budget, const RequestContext& context,
            const OnFound& on_found);

 private:
  struct Visit;
  void visit(Visit& visit);
  void begin_trial(const Visit& visit);
  std::vector<StoreResult> ask_sizes(Visit& visit, bool& answered);
  std::vector<GetCall::Item> land(Visit& visit, std::span<const StoreResult> sizes,
                                  std::vector<std::size_t>& landed);
  void fetch(Visit& visit, std::vector<GetCall::Item> values,
             const std::vector<std::size_t>& landed);
  void take_in(Visit& visit, GetCall& call, std::span<const std::size_t> items);
  // What it says about the store that a call did not come back while somebody waited.
  void give_up(Visit& visit, const std::shared_ptr<StoreCall>& call);
  bool submit(Visit& visit, const std::shared_ptr<StoreCall>& call, OpStats& stats);

  const std::shared_ptr<CacheCore> core_;
  const std::span<ReadTier> tiers_;
  const std::chrono::microseconds patience_;
};

// Where a value of so many bytes is read to. Nothing when there is no room, which counts as a fault
// of the get, or when it cannot be what is wanted: then it is rejected.
std::optional<Landing> find_landing(CacheCore& core, Tier& tier, const WantedValue& wanted,
                                    std::uint64_t value_bytes);

// A private entry out of a loaded value: over its pages where they fit its rows, else on the heap.
EntryPin adopt(CacheCore& core, LoadedValue loaded);

}  // namespace vitrove
