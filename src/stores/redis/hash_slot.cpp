#include "stores/redis/hash_slot.h"

namespace vitrove::redis {
namespace {

std::string_view hashed_part(std::string_view key) {
  const std::size_t open = key.find('{');
  if (open == key.npos) return key;
  const std::size_t close = key.find('}', open + 1);
  if (close == key.npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

}  // namespace

std::uint16_t hash_slot(std::string_view key) {
  constexpr std::uint32_t polynomial = 0x1021;
  std::uint32_t crc = 0;
  for (const char c : hashed_part(key)) {
    crc ^= static_cast<std::uint32_t>(static_cast<unsigned char>(c)) << 8;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 0x8000) != 0 ? (crc << 1) ^ polynomial : crc << 1;
    }
  }
  return static_cast<std::uint16_t>((crc & 0xFFFF) % slot_count);
}

}  // namespace vitrove::redis
