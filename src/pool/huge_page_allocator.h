// HugePageAllocator: for tables that are read at random. From 2 MiB on it asks for transparent huge
// pages: with small ones nearly every access to a table of a million pages also misses the TLB.
#pragma once

#include <cstddef>
#include <new>

#include <sys/mman.h>

namespace vitrove {

template <class T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <class Other>
  explicit HugePageAllocator(const HugePageAllocator<Other>&) noexcept {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < huge_page) return static_cast<T*>(::operator new(bytes));
    void* memory = ::operator new(rounded(bytes), std::align_val_t{huge_page});
    madvise(memory, rounded(bytes), MADV_HUGEPAGE);  // a wish: without it all is slower, and right
    return static_cast<T*>(memory);
  }

  void deallocate(T* memory, std::size_t count) noexcept {
    if (count * sizeof(T) < huge_page) {
      ::operator delete(memory);
    } else {
      ::operator delete(memory, std::align_val_t{huge_page});
    }
  }

  bool operator==(const HugePageAllocator&) const { return true; }

 private:
  static constexpr std::size_t huge_page = std::size_t{2} << 20;
  static std::size_t rounded(std::size_t bytes) {
    return (bytes + huge_page - 1) / huge_page * huge_page;
  }
};

}  // namespace vitrove
