#include "unit/mooncake/short_of_memory.h"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constinit std::atomic<std::size_t> largest_allowed{std::numeric_limits<std::size_t>::max()};

}  // namespace

void* operator new(std::size_t size) {
  void* const memory = size > largest_allowed ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace vitrove::testing {

ScopedShortage::ScopedShortage(std::size_t largest) { largest_allowed = largest; }
ScopedShortage::~ScopedShortage() { largest_allowed = std::numeric_limits<std::size_t>::max(); }

}  // namespace vitrove::testing
