// Little-endian numbers in byte buffers, whatever the host's own order and alignment.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace vitrove {

// `Number` is an unsigned integer; `at` has sizeof(Number) bytes.
template <std::unsigned_integral Number>
void store_le(std::byte* at, Number value) {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(at, &value, sizeof value);
  } else {
    for (std::size_t i = 0; i < sizeof value; ++i) {
      at[i] = static_cast<std::byte>(value >> (8 * i));
    }
  }
}

template <std::unsigned_integral Number>
Number load_le(const std::byte* at) {
  Number value = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&value, at, sizeof value);
  } else {
    for (std::size_t i = 0; i < sizeof value; ++i) {
      value = static_cast<Number>(value | (std::to_integer<Number>(at[i]) << (8 * i)));
    }
  }
  return value;
}

}  // namespace vitrove
