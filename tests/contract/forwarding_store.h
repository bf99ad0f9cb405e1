// ForwardingStore: passes everything on to another store. Tests override what theirs does
// differently.
#pragma once

#include <memory>
#include <utility>

#include "vitrove/embedding_store.h"
#include "vitrove/memory_store.h"

namespace vitrove::testing {

class ForwardingStore : public EmbeddingStore {
 public:
  std::string_view name() const override { return "forwarding"; }
  StoreCapabilities capabilities() const override { return inner->capabilities(); }
  StoreHealth health() const override { return inner->health(); }
  std::vector<StoreResult> batch_is_exist(std::span<const EmbeddingKey> keys,
                                          const StoreContext& context) override {
    return inner->batch_is_exist(keys, context);
  }
  std::vector<StoreResult> batch_get_into_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const MutableBufferList> lists,
                                                        const StoreContext& context) override {
    return inner->batch_get_into_multi_buffers(keys, lists, context);
  }
  std::vector<StoreResult> batch_put_from_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const ConstBufferList> lists,
                                                        PutMode mode,
                                                        const StoreContext& context) override {
    return inner->batch_put_from_multi_buffers(keys, lists, mode, context);
  }
  std::vector<StoreResult> batch_remove(std::span<const EmbeddingKey> keys,
                                        const StoreContext& context) override {
    return inner->batch_remove(keys, context);
  }
  StoreResult list(const ListOptions& options, const std::function<bool(const ListedValue&)>& visit,
                   const StoreContext& context) override {
    return inner->list(options, visit, context);
  }
  StoreResult claim(const EmbeddingKey& key, std::chrono::milliseconds ttl, ClaimToken& token,
                    const StoreContext& context) override {
    return inner->claim(key, ttl, token, context);
  }
  StoreResult renew(const EmbeddingKey& key, const ClaimToken& token, std::chrono::milliseconds ttl,
                    const StoreContext& context) override {
    return inner->renew(key, token, ttl, context);
  }
  StoreResult release(const EmbeddingKey& key, const ClaimToken& token, ClaimOutcome outcome,
                      const StoreContext& context) override {
    return inner->release(key, token, outcome, context);
  }

  const std::unique_ptr<EmbeddingStore> inner = make_memory_store();
};

}  // namespace vitrove::testing
