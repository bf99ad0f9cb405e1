// Makes large allocations of this test program fail (short_of_memory.cpp).
#pragma once

#include <cstddef>

namespace vitrove::testing {

// While it lives; one at a time.
class ScopedShortage {
 public:
  explicit ScopedShortage(std::size_t largest);
  ~ScopedShortage();
  ScopedShortage(const ScopedShortage&) = delete;
  ScopedShortage& operator=(const ScopedShortage&) = delete;
};

}  // namespace vitrove::testing
