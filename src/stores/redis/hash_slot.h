// Which of a cluster's 16384 slots a key belongs to.
#pragma once

#include <cstdint>
#include <string_view>

namespace vitrove::redis {

inline constexpr std::uint16_t slot_count = 16384;

// CRC-16/XMODEM of the key, or of what stands in its first non-empty pair of braces.
std::uint16_t hash_slot(std::string_view key);

}  // namespace vitrove::redis
