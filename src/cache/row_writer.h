// RowWriter: copies encoded rows to where they stay, and checks them on the way: each piece is
// tested for finiteness and hashed while it is in the CPU's cache.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "vitrove/embedding_store.h"
#include "vitrove/types.h"
#include "vitrove/value_format.h"

namespace vitrove {

struct WrittenRows {
  bool finite = true;
  std::array<std::byte, 16> checksum{};  // over rows and side data
};

// `destination`: buffers that add up to the rows.
WrittenRows write_rows(std::span<const std::byte> rows, std::span<const std::byte> side,
                       DType dtype, std::span<const MutableBuffer> destination);

}  // namespace vitrove
