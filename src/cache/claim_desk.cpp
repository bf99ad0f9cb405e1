#include "cache/claim_desk.h"

#include <utility>

namespace vitrove {
namespace {

constexpr std::uint32_t desk_threads = 2;
constexpr std::size_t desk_queue = 64;

// One question. When nobody waits for the answer any more, a claim that was won all the same is let
// go with the call.
class ClaimCall final : public LaneCall {
 public:
  ClaimCall(std::shared_ptr<ClaimKeeper> keeper, ClaimKeeper::Claimed claimed,
            std::shared_ptr<CallGroup> group, std::string trace_id)
      : keeper_(std::move(keeper)),
        claimed_(std::move(claimed)),
        group_(std::move(group)),
        trace_id_(std::move(trace_id)) {}

  void run(const std::stop_token& shutdown) noexcept override {
    const std::stop_callback forward(shutdown, [this] { stop_.request_stop(); });
    StoreContext context;
    context.deadline = deadline();
    context.cancel = stop_.get_token();
    context.trace_id = trace_id_;
    try {
      const auto tier = claimed_.tier;
      result_ = tier->claim(claimed_.key, keeper_->ttl(), claimed_.token, context);
      if (result_.ok()) hold_ = keeper_->hold(std::move(claimed_));
    } catch (...) {  // out of memory
      result_ = {StoreStatus::no_space};
    }
    group_->finished(0);
  }

  void cancel() { stop_.request_stop(); }

  // After the group told of the call.
  const StoreResult& result() const { return result_; }
  ClaimHold& hold() { return hold_; }

 private:
  const std::shared_ptr<ClaimKeeper> keeper_;
  ClaimKeeper::Claimed claimed_;
  const std::shared_ptr<CallGroup> group_;
  const std::string trace_id_;
  std::stop_source stop_;
  StoreResult result_{StoreStatus::unavailable};
  ClaimHold hold_;
};

}  // namespace

ClaimDesk::ClaimDesk(StoreTiers& tiers, const ControllerOptions& options)
    : tiers_(tiers),
      enabled_(options.claims && options.write_policy == WritePolicy::through &&
               options.put_after_uses <= 1 && !tiers.empty()),
      skips_cheap_puts_(options.skip_cheap_puts),
      keeper_(std::make_shared<ClaimKeeper>(options.claim_ttl, options.store_timeout)),
      lane_(enabled_ ? std::make_unique<Lane>(desk_threads, desk_queue) : nullptr) {}

std::optional<std::size_t> ClaimDesk::tier_for(const EmbeddingKey& key,
                                               std::optional<std::uint64_t> bytes) const {
  if (!enabled_) return std::nullopt;
  for (std::size_t number = tiers_.count(); number-- > 0;) {
    const Tier& tier = tiers_.tier(number);
    const StoreCapabilities can = tier.capabilities();
    if (!can.can_claim) continue;
    // What is cheap will not be put, and how cheap it is shows when it is encoded.
    if (skips_cheap_puts_ && !can.is_local) return std::nullopt;
    const bool takes_it = !tier.is_paused(Tier::Direction::writes) && !tier.is_avoided(key) &&
                          bytes.value_or(0) <= can.max_value_bytes;
    return takes_it ? std::optional(number) : std::nullopt;
  }
  return std::nullopt;
}

ClaimDesk::Answer ClaimDesk::ask(std::size_t number, const ValueExpectation& item,
                                 LookupBudget& budget, const RequestContext& context,
                                 ClaimHold& hold) {
  const auto tier = tiers_.reads()[number].tier;
  // Who cannot be read would not be asked for the value either.
  if (budget.used_up() || tier->is_paused(Tier::Direction::reads)) return Answer::unknown;
  const auto group = std::make_shared<CallGroup>();
  const auto call = std::make_shared<ClaimCall>(
      keeper_, ClaimKeeper::Claimed{item.key, item.model_fingerprint, number, tier, {}}, group,
      context.req_id);
  call->set_deadline(budget.store_deadline());
  if (lane_->submit(call) != Lane::Submitted::yes) return Answer::unknown;
  if (!group->next(budget.wait_deadline(), context.cancel)) {
    const bool never_started = lane_->withdraw(call);
    call->cancel();
    const bool is_stores_fault = !never_started && Clock::now() >= budget.store_deadline();
    if (is_stores_fault) tier->report(Tier::Direction::writes, true);
    return Answer::unknown;
  }
  const StoreResult& result = call->result();
  // Never a success: that a claim works says nothing about values.
  if (result.is_fault()) tier->report(Tier::Direction::writes, true);
  if (result.status == StoreStatus::conflict) return Answer::taken;
  if (!result.ok()) return Answer::unknown;
  hold = std::move(call->hold());
  return Answer::won;
}

bool ClaimDesk::wait_idle(Clock::time_point deadline) {
  return (lane_ == nullptr || lane_->wait_idle(deadline)) && keeper_->wait_idle(deadline);
}

void ClaimDesk::shut_down(Clock::time_point bound) {
  if (lane_ != nullptr) lane_->shut_down(bound);
}

ClaimStats ClaimDesk::stats() const {
  const auto of = [&](Result result) {
    return counts_[static_cast<std::size_t>(result)].load(std::memory_order_relaxed);
  };
  return {of(Result::won), of(Result::waited), of(Result::expired), of(Result::failed)};
}

}  // namespace vitrove
