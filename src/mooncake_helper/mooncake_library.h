// MooncakeLibrary: the C interface of a libmooncake_store.so, loaded at run time.
//
// Functions and struct are declared here as the library's header has them, since no wheel and no
// package brings that header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace vitrove::mooncake {

using StoreHandle = void*;

struct ReplicateConfig {
  std::size_t replica_num;
  int with_soft_pin;
  int with_hard_pin;
  const char** preferred_segments;
  std::size_t preferred_segments_count;
};

struct MooncakeLibrary {
  // Throws std::runtime_error, in plain words, when the library or one of its functions is missing.
  // It stays loaded until the process ends: its threads do.
  explicit MooncakeLibrary(const std::string& path);

  StoreHandle (*create)() = nullptr;
  void (*destroy)(StoreHandle) = nullptr;
  int (*setup)(StoreHandle, const char* hostname, const char* metadata, std::uint64_t segment,
               std::uint64_t local_buffer, const char* protocol, const char* device,
               const char* master) = nullptr;
  int (*register_buffer)(StoreHandle, void*, std::size_t) = nullptr;
  int (*unregister_buffer)(StoreHandle, void*) = nullptr;
  int (*batch_put_from)(StoreHandle, const char** keys, void** buffers, const std::size_t* sizes,
                        std::size_t count, const ReplicateConfig*, int* results) = nullptr;
  int (*batch_get_into)(StoreHandle, const char** keys, void** buffers, const std::size_t* sizes,
                        std::size_t count, std::int64_t* results) = nullptr;
  int (*batch_is_exist)(StoreHandle, const char** keys, std::size_t count, int* results) = nullptr;
  std::int64_t (*get_size)(StoreHandle, const char* key) = nullptr;
  int (*remove)(StoreHandle, const char* key, int force) = nullptr;
};

}  // namespace vitrove::mooncake
