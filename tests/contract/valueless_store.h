// ValuelessStore: for tests of what a store does beside its values. Each call about values is told
// ok and does nothing.
#pragma once

#include "vitrove/embedding_store.h"

namespace vitrove::testing {

class ValuelessStore : public EmbeddingStore {
 public:
  std::string_view name() const override { return "valueless"; }
  StoreCapabilities capabilities() const override { return {}; }
  StoreHealth health() const override { return {}; }
  std::vector<StoreResult> batch_is_exist(std::span<const EmbeddingKey> keys,
                                          const StoreContext&) override {
    return std::vector<StoreResult>(keys.size());
  }
  std::vector<StoreResult> batch_get_into_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const MutableBufferList>,
                                                        const StoreContext&) override {
    return std::vector<StoreResult>(keys.size());
  }
  std::vector<StoreResult> batch_put_from_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const ConstBufferList>, PutMode,
                                                        const StoreContext&) override {
    return std::vector<StoreResult>(keys.size());
  }
};

}  // namespace vitrove::testing
