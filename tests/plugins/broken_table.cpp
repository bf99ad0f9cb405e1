// A plugin whose table is broken in the way that VITROVE_TEST_BROKEN_TABLE says.
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "vitrove/memory_store.h"
#include "vitrove/store_plugin_adapter.h"

namespace {

std::unique_ptr<vitrove::EmbeddingStore> create(const vitrove::StoreUrl&, vitrove::StoreOptions&) {
  return vitrove::make_memory_store();
}

constexpr vitrove_option options[] = {{}};

vitrove_store_plugin broken_table(std::string_view how) {
  vitrove_store_plugin table = vitrove::make_store_plugin<create>("broken_table", "1.0", options);
  if (how == "abi") table.abi_version = 99;
  if (how == "empty") table.struct_size = sizeof table.struct_size;
  if (how == "short") table.struct_size = offsetof(vitrove_store_plugin, batch_put);
  if (how == "no_function") table.batch_is_exist = nullptr;
  if (how == "no_name") table.name = nullptr;
  if (how == "bad_name") table.name = "Bad Name";
  if (how == "taken_name") table.name = "memory";
  return table;
}

}  // namespace

const vitrove_store_plugin* vitrove_store_plugin_v1() {
  const char* const how = std::getenv("VITROVE_TEST_BROKEN_TABLE");
  if (how == nullptr || std::string_view(how) == "null") return nullptr;
  static vitrove_store_plugin table;
  table = broken_table(how);
  return &table;
}
