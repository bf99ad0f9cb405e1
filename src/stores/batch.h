// What every backend does alike with a batch: the checks of the contract in embedding_store.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "vitrove/embedding_store.h"

namespace vitrove {

// A piece that is reported to an observer: small enough to be in the CPU's second-level cache when
// it is hashed, large enough that a system call for each does not matter.
inline constexpr std::size_t observed_piece_bytes = 256 * 1024;

inline std::vector<StoreResult> same_for_all(std::size_t count, StoreStatus status) {
  return std::vector<StoreResult>(count, StoreResult{status});
}

template <typename Buffer>
std::uint64_t total_bytes(std::span<const Buffer> list) {
  std::uint64_t bytes = 0;
  for (const Buffer& buffer : list) bytes += buffer.size();
  return bytes;
}

// ok, or why a value of this size is refused before anything is done.
inline StoreStatus check_value_size(std::uint64_t bytes, std::uint64_t limit) {
  if (bytes == 0) return StoreStatus::invalid;
  return bytes > limit ? StoreStatus::too_large : StoreStatus::ok;
}

// Why a call must end here, if it must.
inline std::optional<StoreStatus> stop_reason(const StoreContext& context) {
  if (context.cancel.stop_requested()) return StoreStatus::cancelled;
  if (context.overdue()) return StoreStatus::timeout;
  return std::nullopt;
}

// Answers each of `count` keys with one_key(i), and the rest with the reason as soon as the call
// has to end.
template <typename OneKey>
std::vector<StoreResult> for_each_key(std::size_t count, const StoreContext& context,
                                      OneKey one_key) {
  std::vector<StoreResult> results;
  results.reserve(count);
  while (results.size() < count) {
    if (const auto reason = stop_reason(context)) {
      results.resize(count, StoreResult{*reason});
      break;
    }
    results.push_back(one_key(results.size()));
  }
  return results;
}

// Copies a whole value into the buffers of a get, piece by piece when somebody watches.
inline void scatter(ConstBuffer value, MutableBufferList buffers, std::size_t key_index,
                    PieceObserver* observer) {
  std::uint64_t offset = 0;
  for (MutableBuffer buffer : buffers) {
    while (!buffer.empty()) {
      const std::size_t count =
          observer != nullptr ? std::min(buffer.size(), observed_piece_bytes) : buffer.size();
      std::memcpy(buffer.data(), value.data() + offset, count);
      if (observer != nullptr) observer->on_piece(key_index, offset, buffer.first(count));
      offset += count;
      buffer = buffer.subspan(count);
    }
  }
}

// `target` has room for the sum of the buffers.
inline void gather(ConstBufferList buffers, std::byte* target) {
  for (const ConstBuffer& buffer : buffers) {
    if (buffer.empty()) continue;
    std::memcpy(target, buffer.data(), buffer.size());
    target += buffer.size();
  }
}

}  // namespace vitrove
