#include "cache/store_lookup.h"

#include <algorithm>
#include <map>
#include <utility>

namespace vitrove {
namespace {

bool is_wanted(const Entry& entry, const WantedValue& wanted) {
  if (wanted.tenant && entry.details->header.tenant != *wanted.tenant) return false;
  return !wanted.expected || entry.matches(*wanted.expected);
}

}  // namespace

// Where aliases lead, and what became of it.
struct StoreLookup::Target {
  WantedValue wanted;
  std::vector<const FoundAlias*> aliases;
  FlightLead lead;
  bool others_are_at_it = false;
  bool gone = false;      // no embedding stands there, in any store
  bool no_value = false;  // what stands there is an alias, or another's
  EntryPin entry;
  Source source = Source::store;
};

void StoreLookup::run(std::span<LookupItem> items, LookupBudget& budget,
                      const RequestContext& context) {
  std::vector<LoadItem> loads;
  for (const LookupItem& item : items) loads.push_back({item.wanted});
  for (;;) {
    std::vector<FoundAlias> aliases;
    loader_.load(loads, budget, context, [&](std::size_t i, LoadedValue loaded) {
      const auto& target = loaded.value.side.alias_target;
      if (target) {
        aliases.push_back({i, *target, loaded.value.header.model_fingerprint, loaded.tier});
      } else {
        take(items[i], std::move(loaded));
      }
    });
    if (aliases.empty()) return;
    follow(items, aliases, budget, context);

    // What has a dangling alias in one tier may stand in a farther one; nobody else is asked again.
    for (LoadItem& load : loads) load.found = true;
    for (const FoundAlias& alias : aliases) {
      if (items[alias.item].entry) continue;
      loads[alias.item].found = false;
      loads[alias.item].first_tier = alias.tier + 1;
    }
  }
}

void StoreLookup::take(LookupItem& item, LoadedValue loaded) {
  const std::size_t nearer = loaded.tier;
  EntryPin entry = adopt(core_, std::move(loaded));
  if (!item.lead) {
    item.entry = std::move(entry);
    return;
  }
  const auto copy = nearer > 0 ? put_value_of(core_, entry) : nullptr;
  item.entry = board_.complete(std::move(item.lead), std::move(entry), [&] {
    if (nearer > 0) tiers_.put(copy, nearer);
  });
}

void StoreLookup::follow(std::span<LookupItem> items, std::span<const FoundAlias> aliases,
                         LookupBudget& budget, const RequestContext& context) {
  std::map<EmbeddingKey, Target> by_key;
  for (const FoundAlias& alias : aliases) {
    Target& target = by_key[alias.target];
    target.wanted = wanted_target(items[alias.item], alias.target);
    target.aliases.push_back(&alias);
  }
  std::vector<Target> targets;
  for (auto& [key, target] : by_key) {
    const FillOwner owner{target.aliases.front()->model, std::nullopt};
    auto claim = board_.claim(key, owner);
    if (auto* ready = std::get_if<EntryPin>(&claim)) {
      target.no_value = !is_wanted(**ready, target.wanted);
      if (!target.no_value) target.entry = std::move(*ready);
      target.source = Source::local;
    } else if (auto* lead = std::get_if<FlightLead>(&claim)) {
      target.lead = std::move(*lead);
    } else {
      // Waiting for another request is not for a lookup; he may be encoding.
      target.others_are_at_it = true;
    }
    targets.push_back(std::move(target));
  }
  load_targets(targets, budget, context);

  for (const Target& target : targets) {
    for (const FoundAlias* alias : target.aliases) {
      LookupItem& item = items[alias->item];
      if (target.entry) {
        attach(item, target, alias->tier);
      } else if (target.no_value || (target.gone && !target.others_are_at_it)) {
        core_.count_dangling_alias();
        tiers_.tier(alias->tier).mark_bad(item.wanted.key, Tier::Bad::not_believed);
      }
    }
  }
}

WantedValue StoreLookup::wanted_target(const LookupItem& item, const EmbeddingKey& target) {
  WantedValue wanted = item.wanted;
  wanted.key = target;
  if (wanted.expected) wanted.expected->key = target;
  return wanted;
}

void StoreLookup::load_targets(std::span<Target> targets, LookupBudget& budget,
                               const RequestContext& context) {
  std::vector<LoadItem> loads;
  for (const Target& target : targets) {
    const bool settled = target.entry || target.no_value;
    loads.push_back({target.wanted, 0, settled, 0});
  }
  loader_.load(loads, budget, context, [&](std::size_t i, LoadedValue loaded) {
    if (loaded.value.side.alias_target) {
      targets[i].no_value = true;  // an alias of an alias leads nowhere
    } else {
      take_target(targets[i], std::move(loaded));
    }
  });
  for (std::size_t i = 0; i < targets.size(); ++i) {
    targets[i].gone = loads[i].absent == tiers_.count();
    targets[i].lead.step_down();
  }
}

void StoreLookup::take_target(Target& target, LoadedValue loaded) {
  LookupItem item;
  item.lead = std::move(target.lead);
  item.wanted = target.wanted;
  take(item, std::move(loaded));
  target.entry = std::move(item.entry);
  if (!target.others_are_at_it) return;
  if (EntryPin ready = core_.table().find_surely(target.wanted.key))
    target.entry = std::move(ready);
}

void StoreLookup::attach(LookupItem& item, const Target& target, std::size_t alias_tier) {
  item.source = target.source;
  if (!item.lead) {
    item.entry = target.entry.another();
    return;
  }
  const auto copy = alias_tier > 0 ? alias_value_of(item.wanted.key, target.entry) : nullptr;
  item.entry = board_.complete(std::move(item.lead), target.entry.another(), [&] {
    if (alias_tier > 0 && !target.entry->is_gone()) tiers_.put(copy, alias_tier);
  });
}

}  // namespace vitrove
