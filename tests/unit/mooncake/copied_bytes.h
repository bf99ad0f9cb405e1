// Counts the bytes that our own code copies out of some memory, or into it: this test program
// defines the functions that do it (copied_bytes.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vitrove::testing {

// One at a time.
class CopiedBytes {
 public:
  explicit CopiedBytes(std::span<const std::byte> memory);
  ~CopiedBytes();
  CopiedBytes(const CopiedBytes&) = delete;
  CopiedBytes& operator=(const CopiedBytes&) = delete;

  std::uint64_t out_of_it() const;
  std::uint64_t into_it() const;
};

}  // namespace vitrove::testing
