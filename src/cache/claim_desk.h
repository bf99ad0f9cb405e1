// ClaimDesk: asks the farthest tier that can claim for the right to encode (design section 5), and
// counts what came of it. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>

#include "cache/claim_keeper.h"
#include "cache/lookup_budget.h"
#include "cache/store_tiers.h"

namespace vitrove {

class ClaimDesk {
 public:
  using Clock = LaneCall::Clock;

  ClaimDesk(StoreTiers& tiers, const ControllerOptions& options);

  // The tier to ask about a value of so many bytes, as far as they are known: the farthest that can
  // claim, when it would be given the put that has to follow.
  std::optional<std::size_t> tier_for(const EmbeddingKey& key,
                                      std::optional<std::uint64_t> bytes) const;

  enum class Answer : std::uint8_t { won, taken, unknown };
  // Within the budget of a lookup. `hold` is filled in when it is won.
  Answer ask(std::size_t tier, const ValueExpectation& item, LookupBudget& budget,
             const RequestContext& context, ClaimHold& hold);

  ClaimKeeper& keeper() { return *keeper_; }

  enum class Result : std::uint8_t { won, waited, expired, failed };
  void count(Result result) {
    counts_[static_cast<std::size_t>(result)].fetch_add(1, std::memory_order_relaxed);
  }
  ClaimStats stats() const;

 private:
  StoreTiers& tiers_;
  const bool enabled_;
  const std::shared_ptr<ClaimKeeper> keeper_;  // shared with calls that hang
  std::array<std::atomic<std::uint64_t>, 4> counts_{};
};

}  // namespace vitrove
