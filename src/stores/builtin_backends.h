// The backends that are part of the library: a declaration here, a line in
// EmbeddingStoreFactory::with_builtins().
#pragma once

#include <memory>

#include "vitrove/embedding_store_factory.h"

namespace vitrove {

std::unique_ptr<EmbeddingStore> create_memory_store(const StoreUrl& url, StoreOptions& options);
std::unique_ptr<EmbeddingStore> create_file_store(const StoreUrl& url, StoreOptions& options);
std::unique_ptr<EmbeddingStore> create_redis_store(const StoreUrl& url, StoreOptions& options);
std::unique_ptr<EmbeddingStore> create_mooncake_store(const StoreUrl& url, StoreOptions& options);

}  // namespace vitrove
