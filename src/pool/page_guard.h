// Makes a late read of memory that was given back visible: a byte pattern that is no picture's, and
// under the address sanitizer an error at the very instruction.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

// Of the address sanitizer's run-time library; null where it is not linked.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
[[gnu::weak]] void __asan_poison_memory_region(const volatile void* address, std::size_t size);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* address, std::size_t size);
[[gnu::weak]] int __asan_address_is_poisoned(const volatile void* address);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace vitrove {

inline void allow_access(std::span<const std::byte> memory) {
  if (__asan_unpoison_memory_region == nullptr) return;
  __asan_unpoison_memory_region(memory.data(), memory.size());
}

inline bool is_access_forbidden(const std::byte* address) {
  return __asan_address_is_poisoned != nullptr && __asan_address_is_poisoned(address) != 0;
}

// Nobody may touch it until allow_access().
inline void fill_and_forbid(std::span<std::byte> memory, std::byte pattern) {
  if (memory.empty()) return;
  std::memset(memory.data(), static_cast<int>(pattern), memory.size());
  if (__asan_poison_memory_region != nullptr) {
    __asan_poison_memory_region(memory.data(), memory.size());
  }
}

}  // namespace vitrove
