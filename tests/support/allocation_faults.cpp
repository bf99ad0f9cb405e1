#include "support/allocation_faults.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local bool has_none = false;
thread_local int left = 0;  // until one fails; 0: none will

bool fails() { return has_none || (left > 0 && --left == 0); }

}  // namespace

// The program's own, in place of the library's. Under a sanitizer, whose allocator keeps the forms
// apart, all that end in this operator delete have to be replaced together.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return fails() ? nullptr : std::malloc(size > 0 ? size : 1);
}

void* operator new(std::size_t size) {
  void* const memory = operator new(size, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace vitrove::test {

void fail_allocations_of_this_thread(bool fail) { has_none = fail; }

AllocationFault::AllocationFault(int which) { left = which; }
AllocationFault::~AllocationFault() { left = 0; }
bool AllocationFault::happened() const { return left == 0; }

}  // namespace vitrove::test
