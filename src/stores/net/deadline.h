// Sharing a caller's time among several that may each use up all of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace vitrove::net {

// When the first of `sharers` has had its share. Without an end there is nothing to share.
inline std::chrono::steady_clock::time_point share_of(
    std::chrono::steady_clock::time_point deadline, std::size_t sharers) {
  const auto now = std::chrono::steady_clock::now();
  if (deadline <= now || deadline == std::chrono::steady_clock::time_point::max()) return deadline;
  return now + (deadline - now) / static_cast<std::int64_t>(sharers);
}

}  // namespace vitrove::net
