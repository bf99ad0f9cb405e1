// EncodeCosts: what encoding has cost lately, by model: an exponentially weighted mean.
// Thread-safe; not on the hit path.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "vitrove/digest.h"

namespace vitrove {

class EncodeCosts {
 public:
  using Cost = std::chrono::microseconds;

  void note(const Digest256& model, Cost cost) {
    std::lock_guard lock(mutex_);
    // Reloads make new models; the old ones are asked for no more.
    if (means_.size() >= max_models && !means_.contains(model)) means_.clear();
    const auto [place, is_first] = means_.try_emplace(model, cost);
    if (!is_first) place->second += (cost - place->second) / weight;
  }
  // Nothing before the first encode.
  std::optional<Cost> expected(const Digest256& model) const {
    std::lock_guard lock(mutex_);
    const auto found = means_.find(model);
    return found == means_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  static constexpr std::size_t max_models = 64;
  static constexpr int weight = 8;

  mutable std::mutex mutex_;
  std::unordered_map<Digest256, Cost> means_;
};

}  // namespace vitrove
