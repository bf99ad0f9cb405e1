// Side data: what belongs to an embedding beside its rows, so that a hit answers exactly like a
// miss (field case B28). Stored after the rows; typed and length-framed; at most 64 KiB.
//
// Byte layout in docs/value-format.md: a sequence of records {u16 type, u16 zero, u32 length,
// bytes}, little-endian, in rising order of type, each type at most once. An unknown type with the
// top bit clear is an error; with the top bit set (0x8000) it is skipped, for later additions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vitrove/embedding_key.h"
#include "vitrove/types.h"

namespace vitrove {

constexpr std::size_t max_side_bytes = 64 * 1024;
constexpr double max_side_seconds = 1e9;  // 31 years; beyond that, or below 0, is no time

// How long a sound is, and how much of it, from its start, the rows are of: a model that listens to
// 30 seconds hears no more of an hour.
struct SoundLength {
  double seconds = 0;
  double seconds_used = 0;
  bool operator==(const SoundLength&) const = default;
};

struct SideData {
  std::optional<Grid> grid;
  std::vector<double> timestamps;  // seconds, one per temporal grid step; empty = none
  std::optional<double> seconds_per_grid;
  std::optional<EmbeddingKey> alias_target;  // only in values of kind alias
  std::optional<SoundLength> sound;

  bool operator==(const SideData&) const = default;

  std::size_t encoded_size() const;
  // Throws Error{too_large} beyond max_side_bytes, Error{invalid_argument} for seconds that are not
  // within 0 .. max_side_seconds.
  std::vector<std::byte> encode() const;
  // Nothing on any irregularity; never allocates more than the input is long.
  static std::optional<SideData> decode(std::span<const std::byte> bytes);
};

}  // namespace vitrove
