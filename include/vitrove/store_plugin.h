/* The C interface of a store plugin: a shared library that exports one symbol,
 *
 *     const vitrove_store_plugin *vitrove_store_plugin_v1(void);
 *
 * returning a table that lives as long as the library. Status codes only; nothing is thrown across.
 * Every struct starts with its own size, so that fields can be added at the end: a host reads no
 * further than `struct_size`, a plugin fills no further than the host's. C++ authors derive from
 * EmbeddingStore and use store_plugin_adapter.h instead of filling this in by hand.
 *
 * Threads: every function may be called from several threads at once on one handle, except
 * `destroy`, which is called once and last. Buffers are the host's and valid until the call
 * returns. Semantics of each operation: embedding_store.h. Status codes are the values of
 * StoreStatus.
 */
#ifndef VITROVE_STORE_PLUGIN_H
#define VITROVE_STORE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { VITROVE_STORE_PLUGIN_ABI = 1 };

typedef struct vitrove_store vitrove_store; /* opaque: the plugin's instance */

typedef struct vitrove_key {
  uint8_t digest[32];
} vitrove_key;

typedef struct vitrove_buffer {
  void* data;
  uint64_t size;
} vitrove_buffer;

typedef struct vitrove_buffer_list {
  const vitrove_buffer* buffers;
  size_t count;
} vitrove_buffer_list;

typedef struct vitrove_result {
  int32_t status; /* StoreStatus */
  int32_t error_number;
  uint64_t size;
} vitrove_result;

typedef struct vitrove_option {
  const char* name;
  const char* value;
} vitrove_option;

typedef struct vitrove_context {
  size_t struct_size;
  int64_t deadline_ns; /* CLOCK_MONOTONIC, INT64_MAX = none */
  int (*is_cancelled)(void* cookie);
  void* cookie;
  const char* trace_id;
  /* Of gets: see PieceObserver in embedding_store.h. NULL when nobody watches. */
  void (*on_piece)(void* cookie, size_t key_index, uint64_t offset, const void* piece,
                   uint64_t size);
} vitrove_context;

typedef struct vitrove_capabilities {
  size_t struct_size;
  int32_t can_remove, can_list, can_claim, can_replace, is_local;
  int32_t reports_pieces;
  uint64_t max_value_bytes;
} vitrove_capabilities;

typedef struct vitrove_health {
  size_t struct_size;
  int32_t state; /* StoreState */
  int32_t has_bytes, has_capacity, has_entries;
  uint64_t bytes, capacity, entries;
  char detail[256];
} vitrove_health;

typedef struct vitrove_listed {
  size_t struct_size;
  vitrove_key key;
  uint64_t size;
  int64_t last_used_us;  /* since the Unix epoch */
  const uint8_t* header; /* 256 bytes or NULL */
} vitrove_listed;

typedef struct vitrove_store_plugin {
  size_t struct_size;
  uint32_t abi_version; /* VITROVE_STORE_PLUGIN_ABI */
  const char* name;     /* the URL scheme */
  const char* version;  /* of the plugin, for doctor */
  /* Known option names with one line of help each, ended by {NULL, NULL}. */
  const vitrove_option* options;

  /* 0 and *out, or a negative number and a message in `error` (NUL-terminated, error_size bytes).
   * `url` has no options; they come decoded in the list, and only names from `options` above. */
  int (*create)(const char* url, const vitrove_option* options, size_t option_count,
                vitrove_store** out, char* error, size_t error_size);
  void (*destroy)(vitrove_store* store);

  /* Per-key results; `replace` is PutMode. */
  void (*batch_get)(vitrove_store*, const vitrove_key*, const vitrove_buffer_list*, size_t count,
                    const vitrove_context*, vitrove_result*);
  void (*batch_put)(vitrove_store*, const vitrove_key*, const vitrove_buffer_list*, size_t count,
                    int replace, const vitrove_context*, vitrove_result*);
  void (*batch_is_exist)(vitrove_store*, const vitrove_key*, size_t count, const vitrove_context*,
                         vitrove_result*);
  void (*capabilities)(vitrove_store*, vitrove_capabilities*);
  void (*health)(vitrove_store*, vitrove_health*);

  /* Optional: may be NULL. */
  void (*register_buffer)(vitrove_store*, void* base, uint64_t size);
  void (*unregister_buffer)(vitrove_store*, void* base, uint64_t size);
  void (*batch_remove)(vitrove_store*, const vitrove_key*, size_t count, const vitrove_context*,
                       vitrove_result*);
  vitrove_result (*list)(vitrove_store*, int with_header,
                         int (*visit)(void* cookie, const vitrove_listed*), void* cookie,
                         const vitrove_context*);
  /* `token` has room for 64 bytes, the NUL included. */
  vitrove_result (*claim)(vitrove_store*, const vitrove_key*, int64_t ttl_ms, char* token,
                          const vitrove_context*);
  vitrove_result (*renew)(vitrove_store*, const vitrove_key*, const char* token, int64_t ttl_ms,
                          const vitrove_context*);
  vitrove_result (*release)(vitrove_store*, const vitrove_key*, const char* token, int stored,
                            const vitrove_context*);
} vitrove_store_plugin;

typedef const vitrove_store_plugin* (*vitrove_store_plugin_entry)(void);

/* What a plugin defines. Declared here so that it is exported whatever the compiler's flags. */
__attribute__((visibility("default"))) const vitrove_store_plugin* vitrove_store_plugin_v1(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* VITROVE_STORE_PLUGIN_H */
