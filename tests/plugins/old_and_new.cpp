// A plugin by hand, made for the shorter or the longer table of another release, as
// VITROVE_TEST_TABLE says: "old" ends before the optional functions, "new" has fields beyond ours.
// Its store answers every question with one fixed value of three bytes, or with nonsense.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "vitrove/store_plugin.h"

namespace {

char instance;

int create(const char* url, const vitrove_option*, size_t, vitrove_store** out, char*, size_t) {
  if (std::string_view(url) != "old_and_new://host:7/a%20b") return -1;
  *out = reinterpret_cast<vitrove_store*>(&instance);
  return 0;
}
void destroy(vitrove_store*) {}

void batch_get(vitrove_store*, const vitrove_key*, const vitrove_buffer_list* lists, size_t count,
               const vitrove_context*, vitrove_result* results) {
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(lists[i].buffers[0].data, "abc", 3);
    results[i] = {0, 0, 3};
  }
}
// Fills in nothing at all.
void batch_put(vitrove_store*, const vitrove_key*, const vitrove_buffer_list*, size_t, int,
               const vitrove_context*, vitrove_result*) {}
// A status of a later release.
void batch_is_exist(vitrove_store*, const vitrove_key*, size_t count, const vitrove_context*,
                    vitrove_result* results) {
  for (size_t i = 0; i < count; ++i) results[i] = {i == 0 ? 1000 : -5, 0, 3};
}
// As a plugin that knows only the first field would: no further than that.
void capabilities(vitrove_store*, vitrove_capabilities* out) { out->can_remove = 1; }
void health(vitrove_store*, vitrove_health* out) {
  out->state = 77;
  std::memset(out->detail, 'x', sizeof out->detail);  // no NUL
}

// What stands behind an old table's end is not ours to call.
void never_call(vitrove_store*, void*, uint64_t) { std::abort(); }

struct LongerTable {
  vitrove_store_plugin known;
  void* later_fields[4];
};

LongerTable make_table(std::string_view age) {
  LongerTable table{};
  table.known.abi_version = VITROVE_STORE_PLUGIN_ABI;
  table.known.name = "old_and_new";
  table.known.version = "0";
  table.known.create = create;
  table.known.destroy = destroy;
  table.known.batch_get = batch_get;
  table.known.batch_put = batch_put;
  table.known.batch_is_exist = batch_is_exist;
  table.known.capabilities = capabilities;
  table.known.health = health;
  table.known.struct_size = sizeof table;
  if (age == "old") {
    table.known.struct_size = offsetof(vitrove_store_plugin, register_buffer);
    table.known.register_buffer = never_call;
    table.known.unregister_buffer = never_call;
  }
  return table;
}

}  // namespace

const vitrove_store_plugin* vitrove_store_plugin_v1() {
  const char* const age = std::getenv("VITROVE_TEST_TABLE");
  static LongerTable table;
  table = make_table(age == nullptr ? "new" : age);
  return &table.known;
}
