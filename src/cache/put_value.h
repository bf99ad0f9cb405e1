// PutValue: what is put to the stores: an embedding, or an alias that leads to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/cache_core.h"

namespace vitrove {

// What is put, shared by the jobs of all tiers.
struct PutValue {
  ValueHeader header;         // kind alias: complete but for its checksum
  EntryPin entry;             // of an embedding in pages; else of nothing, or of an alias's
  PagePool::Staging staging;  // of an uncached embedding: header and all, in one piece
  std::uint64_t staged_bytes = 0;
  std::vector<std::byte> side;  // of an alias

  // The key under which its rows stand, and the size of that value: for an alias, of the one it
  // points to.
  EmbeddingKey stored_under;
  std::uint64_t stored_bytes = 0;
};

// Of a published entry; nothing when its rows are on the heap and staging cannot hold them.
std::shared_ptr<PutValue> put_value_of(CacheCore& core, const EntryPin& entry);
// Says that `alias` is found under the entry's own key.
std::shared_ptr<PutValue> alias_value_of(const EmbeddingKey& alias, const EntryPin& entry);

}  // namespace vitrove
