// The calls that a lookup makes on a get lane. Each owns all that its store call touches and the
// core in which that memory lies, so that it may outlive its waiter, and even the controller.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cache/landing.h"
#include "cache/lane.h"
#include "cache/tier.h"
#include "cache/value_verifier.h"

namespace vitrove {

// What the calls of one wait have in common.
struct CallSite {
  std::shared_ptr<CacheCore> core;
  std::shared_ptr<Tier> tier;
  std::shared_ptr<CallGroup> group;
  std::string trace_id;
};

class StoreCall : public LaneCall {
 public:
  StoreCall(CallSite site, std::size_t number, OpStats& stats, std::vector<EmbeddingKey> keys)
      : site_(std::move(site)), number_(number), stats_(stats), keys_(std::move(keys)) {}

  void run(const std::stop_token& shutdown) noexcept final;

  // The waiter gives up. Results that come later count for nothing.
  void abandon(const std::string& reason);
  // The same, because its request is over, which speaks neither for the store nor against it.
  void leave();
  // Whether bytes arrived since then.
  bool moved_since(Clock::time_point moment) const noexcept;

  const std::vector<EmbeddingKey>& keys() const { return keys_; }
  // After the group told of the call.
  const std::vector<StoreResult>& results() const { return results_; }

 protected:
  struct Answer {
    std::vector<StoreResult> results;
    std::uint64_t bytes = 0;
  };
  virtual Answer ask(const StoreContext& context) = 0;

  Tier& tier() const { return *site_.tier; }
  CacheCore& core() const { return *site_.core; }
  bool is_abandoned() const noexcept { return settled_.load(std::memory_order_acquire); }
  void note_movement() noexcept;

 private:
  const CallSite site_;
  const std::size_t number_;
  OpStats& stats_;  // of the tier
  std::stop_source stop_;
  std::atomic<Clock::rep> moved_{Clock::time_point::min().time_since_epoch().count()};
  std::atomic<bool> settled_{false};  // counted, by whoever came first

 protected:
  const std::vector<EmbeddingKey> keys_;
  std::vector<StoreResult> results_;
};

class ExistCall final : public StoreCall {
 public:
  ExistCall(const CallSite& site, std::size_t number, std::vector<EmbeddingKey> keys);

 private:
  Answer ask(const StoreContext& context) override;
};

class GetCall final : public StoreCall, private PieceObserver {
 public:
  struct Item {
    WantedValue wanted;
    Landing landing;
  };
  GetCall(const CallSite& site, std::size_t number, std::vector<Item> items);

  // After the group told of the call: the value of each key, and its landing when it is good.
  std::vector<VerifiedValue>& values() { return values_; }
  std::vector<std::optional<Landing>>& landings() { return landings_; }

 private:
  static std::vector<EmbeddingKey> keys_of(const std::vector<Item>& items);
  Answer ask(const StoreContext& context) override;
  void on_piece(std::size_t index, std::uint64_t offset, ConstBuffer piece) noexcept override;
  VerifiedValue judge(std::size_t index, const StoreResult& result);

  std::vector<std::optional<Landing>> landings_;
  std::vector<std::unique_ptr<ValueVerifier>> verifiers_;
  std::vector<VerifiedValue> values_;
};

}  // namespace vitrove
