// DeleteFences: what a store is being told to delete.
//
// A delete may act long after it was asked for, and after its caller has given up. What is put
// under the key meanwhile must not go with it, and what it is about to take must not be served any
// more (field case B32). So each delete stands behind a fence, from before the pool forgets the key
// until the store has answered, however late. Within it no lookup begins to read what is to go, and
// puts wait (put_pipeline.h). The answer is the backend's call coming back: one that gives up by
// itself while its engine may still delete (Redis, after its timeout) is believed to be done, and
// what such a delete takes later is encoded once more.
//
// Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <optional>

#include "vitrove/embedding_key.h"

namespace vitrove {

// What goes: a key, what one model made, or everything.
struct Deletion {
  std::optional<EmbeddingKey> key;
  std::optional<Digest256> model;

  // `of_model`: as far as it is known.
  bool covers(const EmbeddingKey& of_key, const std::optional<Digest256>& of_model) const {
    if (key) return *key == of_key;
    return !model || !of_model || *model == *of_model;
  }
};

class DeleteFences {
 public:
  using Place = std::list<Deletion>::iterator;

  Place raise(const Deletion& deletion) {
    std::lock_guard lock(mutex_);
    const Place place = standing_.insert(standing_.end(), deletion);
    count_.store(standing_.size(), std::memory_order_release);
    return place;
  }
  void lower(Place place) noexcept {
    std::lock_guard lock(mutex_);
    standing_.erase(place);
    count_.store(standing_.size(), std::memory_order_release);
  }

  bool empty() const noexcept { return count_.load(std::memory_order_acquire) == 0; }
  bool cover(const EmbeddingKey& key, const std::optional<Digest256>& model) const {
    if (empty()) return false;
    std::lock_guard lock(mutex_);
    return std::ranges::any_of(
        standing_, [&](const Deletion& deletion) { return deletion.covers(key, model); });
  }

 private:
  mutable std::mutex mutex_;
  std::list<Deletion> standing_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace vitrove
