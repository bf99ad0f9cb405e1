// Vectors of pixels and tensors, as large as one item makes them: filled with zeros.
//
// The C library gives such memory back as soon as it is freed: all from 32 MiB on, and less where
// it was the last of the heap. So each picture of twelve megapixels is mapped anew, 4 KiB a fault,
// which takes a third of the time that decoding does. Huge pages are asked for before anything is
// touched; without them all is slower, and right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sys/mman.h>

namespace vitrove {

// Of memory that is allocated and not touched yet, those huge pages that lie in it as a whole.
inline void wish_for_huge_pages(void* memory, std::size_t bytes) {
  constexpr std::size_t huge_page = std::size_t{2} << 20;
  constexpr std::size_t often_given_back = std::size_t{8} << 20;
  if (bytes < often_given_back) return;
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(memory) % huge_page;
  const std::size_t skipped = (huge_page - beyond) % huge_page;
  madvise(static_cast<std::byte*>(memory) + skipped, (bytes - skipped) / huge_page * huge_page,
          MADV_HUGEPAGE);
}

template <typename T>
std::vector<T> make_large_vector(std::size_t count) {
  std::vector<T> zeros;
  zeros.reserve(count);
  wish_for_huge_pages(zeros.data(), count * sizeof(T));
  zeros.resize(count);
  return zeros;
}

}  // namespace vitrove
