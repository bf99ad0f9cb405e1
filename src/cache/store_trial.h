// StoreTrial: asks a store again that did nothing but fail until the breaker kept everybody away.
//
// Nobody waits for it: the request that had it made goes on with a miss. It asks on a get lane
// about the keys of that request, and gets one of the values that are there, since a store that can
// say "here" may still be unable to give. What comes of it is the breaker's next verdict; without
// one (there was no room to read into) another trial follows. Owns all that its calls touch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/lookup_budget.h"
#include "cache/store_calls.h"

namespace vitrove {

class StoreTrial final : public LaneCall {
 public:
  // `budget`: of the request; the trial has as much time, from when it begins.
  StoreTrial(std::shared_ptr<CacheCore> core, std::shared_ptr<Tier> tier,
             std::vector<WantedValue> wanted, std::string trace_id, const LookupBudget& budget)
      : core_(std::move(core)),
        tier_(std::move(tier)),
        wanted_(std::move(wanted)),
        trace_id_(std::move(trace_id)),
        budget_(budget) {}

  void run(const std::stop_token& shutdown) noexcept override;

 private:
  enum class Verdict : std::uint8_t { works, fails, none };
  Verdict ask(const std::stop_token& shutdown);
  Verdict get(const CallSite& site, const WantedValue& wanted, std::uint64_t value_bytes,
              const std::stop_token& shutdown);
  // What is late is no better than what fails.
  Verdict judge(const StoreCall& call) const;

  const std::shared_ptr<CacheCore> core_;
  const std::shared_ptr<Tier> tier_;
  const std::vector<WantedValue> wanted_;
  const std::string trace_id_;
  LookupBudget budget_;
};

}  // namespace vitrove
