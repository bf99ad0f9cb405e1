// A rank's source that hangs, fails or throws when it is told to.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "contract/gate.h"
#include "vitrove/rank_agreement.h"

namespace vitrove::testing {

enum class Trouble : std::uint8_t { none, delay, empty, wrong_count, throws, hold };

class TroubledSource final : public RankSource {
 public:
  explicit TroubledSource(std::unique_ptr<RankSource> inner) : inner_(std::move(inner)) {}

  // Of the next load.
  void prepare(Trouble trouble, std::chrono::milliseconds delay = {}) {
    delay_ = delay;
    next_ = trouble;
  }
  void fail_lookups(bool fail) { lookups_fail_ = fail; }
  // At the gate.
  void hold_next_lookup() { lookup_holds_ = true; }
  Gate& gate() { return gate_; }

  std::vector<Found> look_up(std::span<const ValueExpectation> items,
                             const RequestContext& context) override {
    if (lookup_holds_.exchange(false)) gate_.pass();
    if (lookups_fail_) throw std::runtime_error("no lookup today");
    return inner_->look_up(items, context);
  }

  std::vector<EmbeddingView> load(std::span<const ValueExpectation> items,
                                  const RequestContext& context) override {
    switch (next_.exchange(Trouble::none)) {
      case Trouble::none:
        break;
      case Trouble::delay:
        std::this_thread::sleep_for(delay_.load());
        break;
      case Trouble::empty:
        return std::vector<EmbeddingView>(items.size());
      case Trouble::wrong_count:
        return std::vector<EmbeddingView>(items.size() + 1);
      case Trouble::throws:
        throw std::runtime_error("no load today");
      case Trouble::hold:
        gate_.pass();
        break;
    }
    // A load that comes late has really loaded: what it holds must be given back.
    RequestContext patient = context;
    patient.deadline = std::chrono::steady_clock::time_point::max();
    patient.cancel = {};
    return inner_->load(items, patient);
  }

  std::uint64_t pool_bytes() const override { return inner_->pool_bytes(); }

 private:
  const std::unique_ptr<RankSource> inner_;
  std::atomic<Trouble> next_ = Trouble::none;
  std::atomic<std::chrono::milliseconds> delay_{};
  std::atomic<bool> lookups_fail_ = false;
  std::atomic<bool> lookup_holds_ = false;
  Gate gate_;
};

}  // namespace vitrove::testing
