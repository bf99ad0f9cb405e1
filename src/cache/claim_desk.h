// ClaimDesk: asks the farthest tier that can claim for the right to encode (design section 5), and
// counts what came of it. To claim is to write: it has threads of its own, so that a store that can
// only be read slows no lookup down, and its faults are faults of writing. Thread-safe.
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

  // Nothing is asked, and nothing held.
  bool wait_idle(Clock::time_point deadline);
  // Nobody asks any more. The keeper goes on until the puts have ended.
  void shut_down(Clock::time_point bound);

  enum class Result : std::uint8_t { won, waited, expired, failed };
  void count(Result result) {
    counts_[static_cast<std::size_t>(result)].fetch_add(1, std::memory_order_relaxed);
  }
  ClaimStats stats() const;

 private:
  StoreTiers& tiers_;
  const bool enabled_;
  const bool skips_cheap_puts_;
  const std::shared_ptr<ClaimKeeper> keeper_;  // shared with calls that hang
  const std::unique_ptr<Lane> lane_;           // nothing when nobody claims
  std::array<std::atomic<std::uint64_t>, 4> counts_{};
};

}  // namespace vitrove
