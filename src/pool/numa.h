// Where memory lies on a host with several NUMA nodes. By system call: libnuma would be one more
// library for two calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace vitrove {

// Pages that are committed from now on lie on `node`, and on others only when that is full: a cache
// that ends for want of memory on one node helps nobody. Answers why it cannot be, or nothing.
std::optional<std::string> prefer_numa_node(std::span<std::byte> memory, std::uint32_t node);

}  // namespace vitrove
