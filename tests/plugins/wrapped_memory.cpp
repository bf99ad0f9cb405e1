// A good plugin: the memory store through the adapter, held to the whole contract.
#include "vitrove/memory_store.h"
#include "vitrove/store_plugin_adapter.h"

namespace {

std::unique_ptr<vitrove::EmbeddingStore> create(const vitrove::StoreUrl&,
                                                vitrove::StoreOptions& options) {
  return vitrove::make_memory_store({.capacity = options.bytes("capacity", 512u << 20)});
}

constexpr vitrove_option options[] = {{"capacity", "bytes to hold (512MiB)"}, {}};
constexpr auto table = vitrove::make_store_plugin<create>("wrapped_memory", "1.0", options);

}  // namespace

const vitrove_store_plugin* vitrove_store_plugin_v1() { return &table; }
