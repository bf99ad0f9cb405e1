// EntrySlab: type-stable memory for entries. An entry that was freed is used again, and its memory
// stays an Entry until the slab ends, so that a reader without a lock may look at the count of one
// that is gone (entry.h). An entry's slot is its name in the table and in the eviction policy.
//
// Chunks are huge pages where the host gives them: with a million entries a lookup would else miss
// the TLB as often as the cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "cache/entry.h"

namespace vitrove {

class EntrySlab {
 public:
  EntrySlab() : chunks_(new std::atomic<Entry*>[max_chunks]()) {}
  ~EntrySlab();
  EntrySlab(const EntrySlab&) = delete;
  EntrySlab& operator=(const EntrySlab&) = delete;

  // A free entry; the caller makes it private. Throws std::bad_alloc.
  Entry& take();
  void give_back(Entry& entry) noexcept;

  // `slot` was taken by a call that happened before.
  Entry& operator[](PolicySlot slot) const noexcept {
    return chunks_[slot >> chunk_bits].load(std::memory_order_acquire)[slot & (chunk_size - 1)];
  }
  // Slots [0, reach) have been used at some time.
  PolicySlot reach() const noexcept { return next_.load(std::memory_order_acquire); }

 private:
  static constexpr std::size_t chunk_bits = 14;
  static constexpr std::size_t chunk_size = std::size_t{1} << chunk_bits;
  static constexpr std::size_t chunk_bytes = chunk_size * sizeof(Entry);
  static constexpr std::size_t max_chunks = std::size_t{1} << 14;

  void add_chunk(std::size_t number);

  std::mutex mutex_;
  std::unique_ptr<std::atomic<Entry*>[]> chunks_;
  std::vector<PolicySlot> free_;
  std::atomic<PolicySlot> next_{0};
};

}  // namespace vitrove
