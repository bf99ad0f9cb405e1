// SlotTable: an array by PolicySlot that grows without moving, so that `on_hit` may touch an
// element while another thread adds later ones. Chunks double in size; an access is a bit scan and
// two loads, without a branch: it stands twice on the hit path.
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
      const std::size_t chunk = place_of(size_).chunk;
      const std::size_t count = std::size_t{first_chunk} << chunk;
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
    const Place place = place_of(slot);
    const T* const elements = chunks_[place.chunk].load(std::memory_order_acquire);
    if (elements != nullptr) prefetch_for_write(elements + place.offset);
  }

 private:
  static constexpr std::uint64_t first_chunk = 1024;
  static constexpr std::size_t first_bits = 10;
  static constexpr std::size_t chunk_count = 23;  // 1024 * (2^23 - 1) > 2^32 slots

  struct Place {
    std::size_t chunk;
    std::size_t offset;
  };
  // Chunk c holds 1024 * 2^c: with 1024 added to it, the highest bit of a slot is the chunk's and
  // the others are the place in it.
  static Place place_of(std::uint64_t slot) {
    const std::uint64_t raised = slot + first_chunk;
    const auto highest = static_cast<std::size_t>(63 - std::countl_zero(raised));
    return {highest - first_bits, raised & ~(std::uint64_t{1} << highest)};
  }

  T* address(PolicySlot slot) const {
    const Place place = place_of(slot);
    return chunks_[place.chunk].load(std::memory_order_acquire) + place.offset;
  }

  using Chunk = std::vector<T, HugePageAllocator<T>>;
  std::array<std::atomic<T*>, chunk_count> chunks_{};
  std::array<Chunk, chunk_count> owned_;
  std::uint64_t size_ = 0;
};

}  // namespace vitrove
