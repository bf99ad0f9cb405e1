// SlotTable: an array by PolicySlot that grows without moving, so that `on_hit` may touch an
// element while another thread adds later ones. Chunks double in size; an access is a bit scan and
// two loads.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/prefetch.h"
#include "pool/huge_page_allocator.h"
#include "vitrove/eviction_policy.h"

namespace vitrove {

template <class T>
class SlotTable {
 public:
  SlotTable() = default;
  SlotTable(const SlotTable&) = delete;
  SlotTable& operator=(const SlotTable&) = delete;

  // Makes elements [0, slot] exist. One caller at a time.
  void reach(PolicySlot slot) {
    while (size_ <= slot) {
      const std::size_t chunk = chunk_of(size_);
      const std::size_t count = chunk_begin(chunk + 1) - chunk_begin(chunk);
      owned_[chunk] = Chunk(count);
      chunks_[chunk].store(owned_[chunk].data(), std::memory_order_release);
      size_ += count;
    }
  }

  // `slot` must have been reached by a call that happened before.
  T& operator[](PolicySlot slot) { return *address(slot); }
  const T& operator[](PolicySlot slot) const { return *address(slot); }
  // Starts loading an element that is about to be written; of any slot.
  void prefetch(PolicySlot slot) const noexcept {
    const std::size_t chunk = chunk_of(slot);
    const T* const elements = chunks_[chunk].load(std::memory_order_acquire);
    if (elements != nullptr) prefetch_for_write(elements + (slot - chunk_begin(chunk)));
  }

 private:
  static constexpr std::size_t first_chunk = 1024;
  static constexpr std::size_t chunk_count = 23;  // 1024 * 2^22 = 2^32 slots

  // Chunk 0 holds [0, 1024), chunk c > 0 holds [1024 * 2^(c-1), 1024 * 2^c).
  static std::size_t chunk_of(std::uint64_t slot) {
    return static_cast<std::size_t>(std::bit_width(slot / first_chunk));
  }
  static std::uint64_t chunk_begin(std::size_t chunk) {
    return chunk == 0 ? 0 : std::uint64_t{first_chunk} << (chunk - 1);
  }

  T* address(PolicySlot slot) const {
    const std::size_t chunk = chunk_of(slot);
    return chunks_[chunk].load(std::memory_order_acquire) + (slot - chunk_begin(chunk));
  }

  using Chunk = std::vector<T, HugePageAllocator<T>>;
  std::array<std::atomic<T*>, chunk_count> chunks_{};
  std::array<Chunk, chunk_count> owned_;
  std::uint64_t size_ = 0;
};

}  // namespace vitrove
