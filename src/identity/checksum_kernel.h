// One XXH3 code path. The same source is compiled once for each instruction set (src/CMakeLists);
// each translation unit includes nothing but this header and xxhash.h, so that no shared inline
// function is ever compiled for a CPU we may not be running on.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace vitrove::checksum {

// Size and alignment of xxHash's streaming state; each kernel asserts that it fits.
constexpr size_t state_size = 576;
constexpr size_t state_alignment = 64;

struct Kernel {
  const char* name;
  void (*reset)(void* state);
  void (*update)(void* state, const void* bytes, size_t length);
  void (*digest)(const void* state, unsigned char* canonical16);
  // One-shot XXH3-64.
  uint64_t (*hash64)(const void* bytes, size_t length);
};

// Null where this build has no such path.
const Kernel* baseline_kernel();
const Kernel* avx2_kernel();
const Kernel* avx512_kernel();

}  // namespace vitrove::checksum
