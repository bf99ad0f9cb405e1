// FillTicket::begin_claim() and claim(): one encode in the whole cluster.
#include <algorithm>
#include <condition_variable>
#include <utility>

#include "base/stoppable_wait.h"
#include "cache/controller_impl.h"

namespace vitrove {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto first_pause = 5ms;
constexpr auto longest_pause = 200ms;
// How long to wait for another's encode: of a model that has not encoded here yet, at least, and in
// all. Beyond that it is quicker to do it oneself.
constexpr auto wait_unknown = 10s;
constexpr auto least_wait = 2s;
constexpr auto longest_wait = 60s;
constexpr int encodes_waited = 4;

[[noreturn]] void leave(const RequestContext& context) {
  if (context.cancel.stop_requested()) {
    throw Error(ErrorCode::cancelled, "the request was cancelled");
  }
  throw Error(ErrorCode::deadline_exceeded, "the request took too long");
}

// Nobody wakes the waiter: the news is another process's.
void pause_until(Clock::time_point end, const RequestContext& context) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  wait_until(never, lock, context.cancel, std::min(end, context.deadline), [] { return false; });
  if (context.cancel.stop_requested() || Clock::now() >= context.deadline) leave(context);
}

// Half of what is left is for encoding it oneself.
Clock::time_point end_of_wait(Clock::duration limit, const RequestContext& context) {
  const auto now = Clock::now();
  if (context.deadline == Clock::time_point::max()) return now + limit;
  return now + std::min<Clock::duration>(limit, (context.deadline - now) / 2);
}

}  // namespace

std::optional<std::size_t> EmbeddingCacheController::Impl::claim_tier(
    const FillTicket::State& ticket) const {
  const ValueExpectation& item = ticket.expected;
  const auto& flushes = core->flushes();
  const auto started = ticket.lead.flight().started;
  if (flushes.flushed_since(started, item.model_fingerprint, FlushLog::Side::stores)) {
    return std::nullopt;
  }
  std::optional<std::uint64_t> bytes;
  if (item.rows) {
    const std::uint64_t row_bytes = std::uint64_t{item.dim} * element_size(item.dtype);
    const std::uint64_t payload = *item.rows * row_bytes;
    bytes = value_header_size + payload;
    const bool is_too_large =
        payload > 0 && core->why_uncached(payload, row_bytes) == Uncached::too_large;
    const std::uint64_t staging = options.pool.staging_pages * core->pool().page_bytes();
    if (is_too_large && *bytes > staging) return std::nullopt;
  }
  return claims.tier_for(item, bytes);
}

Clock::duration EmbeddingCacheController::Impl::claim_wait_limit(const Digest256& model) const {
  const auto cost = encode_costs.expected(model);
  if (!cost) return wait_unknown;
  return std::clamp<Clock::duration>(encodes_waited * *cost, least_wait, longest_wait);
}

std::optional<FillTicket::ClaimResult> FillTicket::State::look_again(
    LookupBudget& budget, const RequestContext& context) {
  LookupItem item{std::move(lead), WantedValue::of(expected), {}};
  impl.lookup.run({&item, 1}, budget, context);
  if (!item.entry) {
    lead = std::move(item.lead);
    return std::nullopt;
  }
  claim.was_stored();
  claim.let_go();
  count_hit(*item.entry, item.source == Source::local ? LookupResult::local : LookupResult::store);
  return ClaimResult{Claim::served, ControllerAccess::view(std::move(item.entry)), item.source};
}

FillTicket::ClaimResult FillTicket::State::wait_for_other(std::size_t tier,
                                                          const RequestContext& context) {
  auto& desk = impl.claims;
  const auto end = end_of_wait(impl.claim_wait_limit(expected.model_fingerprint), context);
  for (Clock::duration pause = first_pause; Clock::now() < end;
       pause = std::min<Clock::duration>(2 * pause, longest_pause)) {
    pause_until(std::min(end, Clock::now() + pause), context);
    if (!impl.claim_tier(*this)) return {};  // a flush came: what is encoded now is for us alone
    LookupBudget budget = impl.budget(context);
    auto found = look_again(budget, context);
    // Each look has the store's time for itself; what it leaves of that is all there is for the
    // questions about the tensors that may follow (B50).
    spent = std::max(spent, budget.spent());
    if (!found) {
      const auto answer = desk.answer(desk.ask(tier, expected, budget, context), context, claim);
      if (answer == ClaimDesk::Answer::taken) continue;
      if (answer == ClaimDesk::Answer::unknown) {
        spent = std::max(spent, budget.spent());
        desk.count(ClaimDesk::Result::failed);
        return {};
      }
      if (answer == ClaimDesk::Answer::won_but_stored) found = look_again(budget, context);
    }
    desk.count(found ? ClaimDesk::Result::waited : ClaimDesk::Result::won);
    return found ? std::move(*found) : ClaimResult{};
  }
  desk.count(ClaimDesk::Result::expired);
  return {};
}

void FillTicket::begin_claim(const RequestContext& context) noexcept {
  State& state = *state_;
  if (!state.lead || state.claim || state.question) return;
  try {
    const auto tier = state.impl.claim_tier(state);
    if (!tier) return;
    const LookupBudget budget = state.impl.budget(context, state.spent);
    state.question = state.impl.claims.ask(*tier, state.expected, budget, context);
    state.question_tier = *tier;
  } catch (...) {  // out of memory: claim() asks, or says so
  }
}

FillTicket::ClaimResult FillTicket::claim(const RequestContext& context, bool wait) {
  State& state = *state_;
  auto& impl = state.impl;
  if (!state.lead || state.claim) return {};
  if (!impl.claim_tier(state)) {  // there is none, or a flush came since it was asked for
    state.question = {};
    return {};
  }
  if (context.cancel.stop_requested()) leave(context);
  begin_claim(context);
  LookupBudget budget = impl.budget(context, state.spent);
  const auto answer = impl.claims.answer(std::exchange(state.question, {}), context, state.claim);
  switch (answer) {
    case ClaimDesk::Answer::taken:
      if (!wait) return {Claim::claimed_elsewhere, {}, Source::store};
      return state.wait_for_other(state.question_tier, context);
    case ClaimDesk::Answer::unknown:
      state.spent += budget.spent();
      if (context.cancel.stop_requested() || Clock::now() >= context.deadline) leave(context);
      impl.claims.count(ClaimDesk::Result::failed);
      return {};
    case ClaimDesk::Answer::won_but_stored:
      if (auto found = state.look_again(budget, context)) {
        state.spent += budget.spent();
        return std::move(*found);
      }
      break;
    case ClaimDesk::Answer::won:
      break;
  }
  state.spent += budget.spent();
  impl.claims.count(ClaimDesk::Result::won);
  return {};
}

}  // namespace vitrove
