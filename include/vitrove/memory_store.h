// The memory store: values in the heap of this process, least recently used out first.
//
//   memory:?capacity=1GiB
//
// Shared by nobody but the users of the object; the reference of the store contract, and a tier for
// processes that run without a pool. A put gathers into the one copy that is kept, a get scatters
// from it; neither holds a lock while it copies. `capacity` bounds the values held; values that
// running puts are still gathering and evicted ones that running gets still read come on top.
// Claims hold among the users of the object; those that ran out are forgotten with the next claim.
#pragma once

#include <cstdint>
#include <memory>

#include "vitrove/embedding_store.h"

namespace vitrove {

struct MemoryStoreOptions {
  std::uint64_t capacity = std::uint64_t{1} << 30;
};

// Throws Error{invalid_argument} when the capacity is zero.
std::unique_ptr<EmbeddingStore> make_memory_store(const MemoryStoreOptions& options = {});

}  // namespace vitrove
