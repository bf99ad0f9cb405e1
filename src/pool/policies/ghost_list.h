// GhostList: the hashes of entries that were evicted lately, oldest forgotten first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <new>
#include <unordered_map>
#include <utility>

namespace vitrove {

class GhostList {
 public:
  // Whoever went has gone: without memory for his ghost he is forgotten.
  void add(std::uint64_t hash) noexcept {
    try {
      order_.emplace_back(hash, ++sequence_);
      latest_[hash] = sequence_;
    } catch (const std::bad_alloc&) {
      return;
    }
  }

  // Answers whether it was there; a ghost is met once.
  bool take(std::uint64_t hash) { return latest_.erase(hash) > 0; }

  void shrink_to(std::size_t count) {
    while (order_.size() > count) {
      const auto [hash, sequence] = order_.front();
      order_.pop_front();
      const auto found = latest_.find(hash);
      if (found != latest_.end() && found->second == sequence) latest_.erase(found);
    }
  }

  std::size_t size() const { return latest_.size(); }

 private:
  std::uint64_t sequence_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> latest_;  // hash → sequence
  std::deque<std::pair<std::uint64_t, std::uint64_t>> order_;
};

}  // namespace vitrove
