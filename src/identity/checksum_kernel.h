// One code path of what is done to every payload that is read: XXH3, and the search for NaN. The
// same source is compiled once for each instruction set (src/CMakeLists); each translation unit
// includes nothing but this header and xxhash.h, so that no shared inline function is ever compiled
// for a CPU we may not be running on.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace vitrove::checksum {

// Size and alignment of xxHash's streaming state; each kernel asserts that it fits.
constexpr size_t state_size = 576;
constexpr size_t state_alignment = 64;

// A fixed count of words, for the vectoriser's sake.
constexpr size_t scan_block = 512;

struct Kernel {
  const char* name;
  void (*reset)(void* state);
  void (*update)(void* state, const void* bytes, size_t length);
  void (*digest)(const void* state, unsigned char* canonical16);
  // One-shot XXH3-64.
  uint64_t (*hash64)(const void* bytes, size_t length);
  // Of `blocks` times `scan_block` bytes as 64-bit words: all of (word & mask) + addend, or'ed.
  uint64_t (*scan)(const void* bytes, size_t blocks, uint64_t mask, uint64_t addend);
};

// Null where this build has no such path.
const Kernel* baseline_kernel();
const Kernel* avx2_kernel();
const Kernel* avx512_kernel();

}  // namespace vitrove::checksum
