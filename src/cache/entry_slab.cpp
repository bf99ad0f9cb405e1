#include "cache/entry_slab.h"

#include <cstdlib>
#include <new>

#include <sys/mman.h>

namespace vitrove {

EntrySlab::~EntrySlab() {
  for (PolicySlot slot = 0; slot < reach(); ++slot) (*this)[slot].~Entry();
  for (std::size_t chunk = 0; chunk < max_chunks; ++chunk) {
    std::free(chunks_[chunk].load(std::memory_order_relaxed));
  }
}

Entry& EntrySlab::take() {
  std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    Entry& entry = (*this)[free_.back()];
    free_.pop_back();
    return entry;
  }
  const PolicySlot slot = next_.load(std::memory_order_relaxed);
  if (slot % chunk_size == 0) add_chunk(slot >> chunk_bits);
  // So that giving back never allocates.
  if (free_.capacity() <= slot) free_.reserve(2 * (std::size_t{slot} + 1));
  Entry& entry = *new (&(*this)[slot]) Entry;
  entry.slot = slot;
  next_.store(slot + 1, std::memory_order_release);
  return entry;
}

void EntrySlab::give_back(Entry& entry) noexcept {
  std::lock_guard lock(mutex_);
  free_.push_back(entry.slot);
}

void EntrySlab::add_chunk(std::size_t number) {
  if (number >= max_chunks) throw std::bad_alloc();
  if (chunks_[number].load(std::memory_order_relaxed) != nullptr) return;
  void* const memory = std::aligned_alloc(chunk_bytes, chunk_bytes);
  if (memory == nullptr) throw std::bad_alloc();
  madvise(memory, chunk_bytes, MADV_HUGEPAGE);  // a wish, not a need
  chunks_[number].store(static_cast<Entry*>(memory), std::memory_order_release);
}

}  // namespace vitrove
