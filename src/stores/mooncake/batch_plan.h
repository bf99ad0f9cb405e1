// How a batch is cut into questions for the helper.
//
// A key stands once in a question: of two equal keys in one batch Mooncake fills the buffers of the
// last alone and calls both a success. A value whose buffers all lie in a region that the helper
// has, and that are not too many, goes as it is; others pass through staging memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "stores/mooncake/wire.h"
#include "vitrove/embedding_store.h"

namespace vitrove::mooncake {

// Mooncake's transfers fail from some thousands of pieces in one call on.
inline constexpr std::size_t max_runs_in_question = 1024;
inline constexpr std::size_t max_runs_in_value = 64;
inline constexpr std::size_t max_keys_in_question = 512;
// What is copied before anything is asked: enough to be worth a question, little enough to start.
inline constexpr std::uint64_t staged_bytes_in_question = std::uint64_t{32} << 20;

// Indices of `keys` in rounds: in no round does a key stand twice, and a key's positions keep their
// order. One round where no key is repeated.
inline std::vector<std::vector<std::size_t>> rounds_of(std::span<const EmbeddingKey> keys) {
  std::map<EmbeddingKey, std::size_t> seen;
  std::vector<std::vector<std::size_t>> rounds;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::size_t round = seen[keys[i]]++;
    if (round == rounds.size()) rounds.emplace_back();
    rounds[round].push_back(i);
  }
  return rounds;
}

// The pool's arena, as the helper knows it.
struct ArenaView {
  std::uint32_t region = 0;
  const std::byte* base = nullptr;
  std::uint64_t bytes = 0;

  template <typename Buffer>
  bool holds(const Buffer& buffer) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(base);
    const auto at = reinterpret_cast<std::uintptr_t>(buffer.data());
    return at >= begin && at - begin <= bytes && buffer.size() <= bytes - (at - begin);
  }
};

// The value's runs in the arena; nothing when it has to be staged. Buffers that follow each other
// in memory become one run.
template <typename Buffer>
std::optional<std::vector<wire::Run>> runs_in_arena(const ArenaView& arena,
                                                    std::span<const Buffer> buffers) {
  std::vector<wire::Run> runs;
  for (const Buffer& buffer : buffers) {
    if (buffer.empty()) continue;
    if (!arena.holds(buffer)) return std::nullopt;
    const auto offset = static_cast<std::uint64_t>(buffer.data() - arena.base);
    if (!runs.empty() && runs.back().offset + runs.back().bytes == offset) {
      runs.back().bytes += buffer.size();
      continue;
    }
    if (runs.size() == max_runs_in_value) return std::nullopt;
    runs.push_back({arena.region, offset, buffer.size()});
  }
  return runs;
}

}  // namespace vitrove::mooncake
