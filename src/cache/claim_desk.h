// ClaimDesk: asks the farthest tier that can claim for the right to encode (design section 5), and
// counts what came of it. Thread-safe.
//
// To claim is to write. So claims have a lane of their own, where a store that writes slowly keeps
// no hit waiting, and their faults count for the breaker of writes; a claim that works says nothing
// about values, and closes no breaker.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "cache/claim_keeper.h"
#include "cache/lookup_budget.h"
#include "cache/store_tiers.h"

namespace vitrove {

class ClaimCall;

// A question that is under way. Without it nobody waits for the answer any more, and a claim that
// is won all the same is let go.
class ClaimQuestion {
 public:
  ClaimQuestion() = default;
  ClaimQuestion(Lane& lane, std::shared_ptr<ClaimCall> call)
      : lane_(&lane), call_(std::move(call)) {}
  ClaimQuestion(ClaimQuestion&& other) noexcept = default;
  ClaimQuestion& operator=(ClaimQuestion&& other) noexcept;
  ~ClaimQuestion() { take_back(); }

  explicit operator bool() const { return call_ != nullptr; }

 private:
  friend class ClaimDesk;
  // False when the store has it already.
  bool take_back() noexcept;

  Lane* lane_ = nullptr;
  std::shared_ptr<ClaimCall> call_;
};

class ClaimDesk {
 public:
  using Clock = LaneCall::Clock;

  ClaimDesk(StoreTiers& tiers, const ControllerOptions& options);

  // The tier to ask about a value of so many bytes, as far as they are known: the farthest that can
  // claim, when it would be given the put that has to follow, and at once: others wait for it.
  std::optional<std::size_t> tier_for(const ValueExpectation& item,
                                      std::optional<std::uint64_t> bytes) const;

  // Asks, for as long as a lookup may take, and does not wait. Nothing when it cannot be asked.
  ClaimQuestion ask(std::size_t tier, const ValueExpectation& item, const LookupBudget& budget,
                    const RequestContext& context);

  // `won_but_stored`: whoever had the claim before may have put the value since it was looked for.
  enum class Answer : std::uint8_t { won, won_but_stored, taken, unknown };
  // Waits for it within the time it was asked for. `hold` is filled in when it is won.
  Answer answer(ClaimQuestion question, const RequestContext& context, ClaimHold& hold);

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
