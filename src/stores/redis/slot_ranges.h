// What a cluster says about who serves which slots.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stores/redis/hash_slot.h"
#include "stores/redis/network.h"
#include "stores/redis/resp.h"

namespace vitrove::redis {

struct SlotRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  Endpoint server;
};

// Of the answer to CLUSTER SLOTS, replicas left out. `asked` stands for servers that do not say
// their own host. Nothing when the answer is of another kind; odd ranges are left out.
std::optional<std::vector<SlotRange>> parse_slot_ranges(const Reply& reply,
                                                        const std::string& asked);

}  // namespace vitrove::redis
