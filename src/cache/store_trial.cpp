#include "cache/store_trial.h"

#include <algorithm>
#include <utility>

#include "cache/store_loader.h"

namespace vitrove {

void StoreTrial::run(const std::stop_token& shutdown) noexcept {
  budget_ = budget_.anew();
  set_deadline(budget_.store_deadline());
  try {
    const Verdict verdict = ask(shutdown);
    if (verdict == Verdict::none || shutdown.stop_requested()) return;
    tier_->report(Tier::Direction::reads, verdict == Verdict::fails);
  } catch (...) {  // out of memory: that says nothing about the store
  }
}

StoreTrial::Verdict StoreTrial::ask(const std::stop_token& shutdown) {
  const CallSite site{core_, tier_, std::make_shared<CallGroup>(), trace_id_};
  std::vector<EmbeddingKey> keys;
  keys.reserve(wanted_.size());
  for (const WantedValue& wanted : wanted_) keys.push_back(wanted.key);
  ExistCall call(site, 0, std::move(keys));
  call.set_deadline(deadline());
  call.run(shutdown);

  const Verdict verdict = judge(call);
  const auto here = std::ranges::find_if(call.results(), &StoreResult::ok);
  if (verdict != Verdict::works || here == call.results().end()) return verdict;
  const auto place = static_cast<std::size_t>(here - call.results().begin());
  return get(site, wanted_[place], here->size, shutdown);
}

StoreTrial::Verdict StoreTrial::get(const CallSite& site, const WantedValue& wanted,
                                    std::uint64_t value_bytes, const std::stop_token& shutdown) {
  auto landing = find_landing(*core_, *tier_, wanted, value_bytes);
  if (!landing) return Verdict::none;
  std::vector<GetCall::Item> one;
  one.push_back({wanted, std::move(*landing)});
  GetCall call(site, 1, std::move(one));
  budget_.allow_for(value_bytes);
  set_deadline(budget_.store_deadline());
  call.set_deadline(deadline());
  set_bytes_held(call.bytes_held());
  call.run(shutdown);
  return judge(call);
}

StoreTrial::Verdict StoreTrial::judge(const StoreCall& call) const {
  if (call.results().size() != call.keys().size()) return Verdict::none;  // out of memory
  return Tier::is_fault(call.results()) || is_overdue(Clock::now()) ? Verdict::fails
                                                                    : Verdict::works;
}

}  // namespace vitrove
