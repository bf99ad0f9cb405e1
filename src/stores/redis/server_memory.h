// What a server says of its memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace vitrove::redis {

struct ServerMemory {
  std::uint64_t used = 0;
  std::uint64_t limit = 0;  // 0: none is set
};

// From the text that INFO memory answers; nothing when it does not say what is used.
std::optional<ServerMemory> parse_server_memory(std::string_view info);

}  // namespace vitrove::redis
