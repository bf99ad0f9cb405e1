#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

#include "cache/lane.h"
#include "vitrove/embedding_store.h"

namespace vitrove {

// A store call of an administrator: removing, listing. The caller waits or leaves. What `call` owns
// is freed when it has ended, before whoever waits hears of it.
class AdminCall final : public LaneCall {
 public:
  AdminCall(std::shared_ptr<CallGroup> group, std::function<void(const StoreContext&)> call)
      : group_(std::move(group)), call_(std::move(call)) {}
  void run(const std::stop_token& shutdown) noexcept override;
  void cancel() { stop_.request_stop(); }

 private:
  const std::shared_ptr<CallGroup> group_;
  std::function<void(const StoreContext&)> call_;
  std::stop_source stop_;
};

}  // namespace vitrove
