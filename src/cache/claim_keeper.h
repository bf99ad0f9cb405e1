// ClaimKeeper: the claims that this controller holds: renewed until they are let go, then released.
//
// A ClaimHold is one of them. Whoever has it owes the cluster a put; when the last step of that has
// ended, or cannot come any more, the hold is destroyed, and the keeper's thread tells the store:
// at once, or of a stored value within a hundredth of the claim's ttl, together with others. Holds
// may outlive the keeper (with calls that hang): they then do nothing, and the claim's ttl ends it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "cache/lane.h"
#include "cache/tier.h"

namespace vitrove {

struct ClaimState;

class ClaimHold {
 public:
  ClaimHold() = default;
  ClaimHold(std::shared_ptr<ClaimState> state, std::uint64_t id, std::size_t tier)
      : state_(std::move(state)), id_(id), tier_(tier) {}
  ClaimHold(ClaimHold&&) noexcept = default;
  ClaimHold& operator=(ClaimHold&& other) noexcept;
  ~ClaimHold() { let_go(); }

  explicit operator bool() const { return state_ != nullptr; }
  std::size_t tier() const { return tier_; }
  void was_stored() { outcome_ = ClaimOutcome::stored; }
  // While the put is not to come soon: a claim that is not renewed ends with its ttl, so that
  // others need not wait for longer. They lock as let_go() does, and resume_renewals() only after a
  // pause.
  void pause_renewals() noexcept;
  void resume_renewals() noexcept;
  // Takes a leaf lock, and waits for nothing.
  void let_go() noexcept;

 private:
  void renew_next(std::chrono::steady_clock::time_point when) noexcept;

  std::shared_ptr<ClaimState> state_;
  std::uint64_t id_ = 0;
  std::size_t tier_ = 0;
  bool is_paused_ = false;
  ClaimOutcome outcome_ = ClaimOutcome::not_stored;
};

class ClaimKeeper {
 public:
  using Clock = LaneCall::Clock;

  // What is held, and where: a number among the controller's tiers.
  struct Claimed {
    EmbeddingKey key;
    Digest256 model;
    std::size_t tier_number = 0;
    std::shared_ptr<Tier> tier;
    ClaimToken token;
  };

  // `timeout`: of one call to the store.
  ClaimKeeper(std::chrono::milliseconds ttl, std::chrono::microseconds timeout);
  ~ClaimKeeper();

  std::chrono::milliseconds ttl() const;
  ClaimHold hold(Claimed claimed);
  // The claims that `which` names are released now, whatever their holders still do.
  void let_go(const std::function<bool(const Claimed&)>& which);
  // True when nothing is held or on its way to the store; false when the deadline came first.
  bool wait_idle(Clock::time_point deadline);
  // Claims that another took over, and those that the store did not take back.
  std::uint64_t lost() const;
  std::uint64_t unreleased() const;
  // Releases what was let go, as far as the store answers at once.
  void shut_down();

 private:
  const std::shared_ptr<ClaimState> state_;
  Lane lane_;
};

}  // namespace vitrove
