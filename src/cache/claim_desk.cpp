#include "cache/claim_desk.h"

#include <utility>

namespace vitrove {
namespace {

// Whoever claims, decodes meanwhile: a claim a core and then some.
constexpr std::uint32_t claim_threads = 2;
constexpr std::size_t most_waiting = 256;

}  // namespace

// One question. When nobody waits for the answer any more, a claim that was won all the same is let
// go with the call.
class ClaimCall final : public LaneCall {
 public:
  ClaimCall(std::shared_ptr<ClaimKeeper> keeper, ClaimKeeper::Claimed claimed, LookupBudget budget,
            std::string trace_id)
      : keeper_(std::move(keeper)),
        tier_(claimed.tier),
        claimed_(std::move(claimed)),
        budget_(budget),
        trace_id_(std::move(trace_id)) {
    set_deadline(budget_.store_deadline());
  }

  void run(const std::stop_token& shutdown) noexcept override {
    const std::stop_callback forward(shutdown, [this] { stop_.request_stop(); });
    StoreContext context;
    context.deadline = deadline();
    context.cancel = stop_.get_token();
    context.trace_id = trace_id_;
    try {
      const EmbeddingKey key = claimed_.key;
      result_ = tier_->claim(key, keeper_->ttl(), claimed_.token, context);
      if (result_.ok()) {
        hold_ = keeper_->hold(std::move(claimed_));
        is_stored_ = look(key, context);
      }
    } catch (...) {  // out of memory
      result_ = {StoreStatus::no_space};
    }
    group_.finished(0);
  }

  void cancel() { stop_.request_stop(); }
  bool wait(const RequestContext& context) {
    return group_.next(budget_.wait_deadline(), context.cancel).has_value();
  }

  Tier& tier() const { return *tier_; }
  // After wait() was true.
  const StoreResult& result() const { return result_; }
  bool is_stored() const { return is_stored_; }
  ClaimHold& hold() { return hold_; }

 private:
  // Whether the value may be there by now: while we hold the claim nobody else comes to put it.
  bool look(const EmbeddingKey& key, const StoreContext& context) const {
    const auto start = Clock::now();
    const auto found = tier_->exist({&key, 1}, context);
    tier_->exists().record(found, 0, Clock::now() - start);
    return found.front().status != StoreStatus::absent;
  }

  const std::shared_ptr<ClaimKeeper> keeper_;
  const std::shared_ptr<Tier> tier_;
  ClaimKeeper::Claimed claimed_;
  const LookupBudget budget_;
  const std::string trace_id_;
  CallGroup group_;
  std::stop_source stop_;
  StoreResult result_{StoreStatus::unavailable};
  bool is_stored_ = true;
  ClaimHold hold_;
};

ClaimQuestion& ClaimQuestion::operator=(ClaimQuestion&& other) noexcept {
  if (this == &other) return *this;
  take_back();
  lane_ = other.lane_;
  call_ = std::move(other.call_);
  return *this;
}

bool ClaimQuestion::take_back() noexcept {
  if (!call_) return true;
  const auto call = std::exchange(call_, nullptr);
  const bool never_started = lane_->withdraw(call);
  call->cancel();
  return never_started;
}

ClaimDesk::ClaimDesk(StoreTiers& tiers, const ControllerOptions& options)
    : tiers_(tiers),
      enabled_(options.claims && options.write_policy == WritePolicy::through &&
               options.put_after_uses <= 1 && !tiers.empty()),
      skips_cheap_puts_(options.skip_cheap_puts),
      keeper_(std::make_shared<ClaimKeeper>(options.claim_ttl, options.store_timeout)),
      lane_(enabled_ ? std::make_unique<Lane>(claim_threads, most_waiting) : nullptr) {}

std::optional<std::size_t> ClaimDesk::tier_for(const ValueExpectation& item,
                                               std::optional<std::uint64_t> bytes) const {
  if (!enabled_) return std::nullopt;
  for (std::size_t number = tiers_.count(); number-- > 0;) {
    const Tier& tier = tiers_.tier(number);
    const StoreCapabilities can = tier.capabilities();
    if (!can.can_claim) continue;
    // What is cheap will not be put, and how cheap it is shows when it is encoded.
    if (skips_cheap_puts_ && !can.is_local) return std::nullopt;
    const bool takes_it = !tier.is_paused(Tier::Direction::writes) && !tier.is_avoided(item.key) &&
                          !tier.deletions().cover(item.key, item.model_fingerprint) &&
                          bytes.value_or(0) <= can.max_value_bytes;
    return takes_it ? std::optional(number) : std::nullopt;
  }
  return std::nullopt;
}

ClaimQuestion ClaimDesk::ask(std::size_t number, const ValueExpectation& item,
                             const LookupBudget& budget, const RequestContext& context) {
  const auto& tier = tiers_.reads()[number].tier;
  if (budget.used_up() || tier->is_paused(Tier::Direction::reads)) return {};
  auto call = std::make_shared<ClaimCall>(
      keeper_, ClaimKeeper::Claimed{item.key, item.model_fingerprint, number, tier, {}}, budget,
      context.req_id);
  if (lane_->submit(call) != Lane::Submitted::yes) return {};
  return {*lane_, std::move(call)};
}

ClaimDesk::Answer ClaimDesk::answer(ClaimQuestion question, const RequestContext& context,
                                    ClaimHold& hold) {
  if (!question) return Answer::unknown;
  const auto call = question.call_;
  if (!call->wait(context)) {
    const bool never_started = question.take_back();
    const bool is_stores_fault = !never_started && call->is_overdue(Clock::now());
    if (is_stores_fault) call->tier().report(Tier::Direction::writes, true);
    return Answer::unknown;
  }
  const StoreResult& result = call->result();
  if (result.status == StoreStatus::conflict) return Answer::taken;
  if (!result.ok()) {
    if (result.is_fault()) call->tier().report(Tier::Direction::writes, true);
    return Answer::unknown;
  }
  hold = std::move(call->hold());
  return call->is_stored() ? Answer::won_but_stored : Answer::won;
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
  return {of(Result::won),    of(Result::waited), of(Result::expired),
          of(Result::failed), keeper_->lost(),    keeper_->unreleased()};
}

}  // namespace vitrove
