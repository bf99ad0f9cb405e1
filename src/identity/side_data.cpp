#include "vitrove/side_data.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/little_endian.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

// Record types: never renumber.
constexpr std::uint16_t grid_record = 1;
constexpr std::uint16_t timestamps_record = 2;
constexpr std::uint16_t seconds_per_grid_record = 3;
constexpr std::uint16_t alias_target_record = 4;
constexpr std::uint16_t sound_record = 5;
constexpr std::uint16_t optional_bit = 0x8000;

constexpr std::size_t record_head_size = 8;
constexpr std::size_t grid_size = 12;
constexpr std::size_t number_size = 8;
constexpr std::size_t sound_size = 2 * number_size;
constexpr std::size_t digest_size = sizeof(Digest256::bytes);

class Writer {
 public:
  explicit Writer(std::size_t size) : bytes_(size) {}

  void record(std::uint16_t type, std::size_t length) {
    store_le(next(2), type);
    store_le(next(2), std::uint16_t{0});
    store_le(next(4), static_cast<std::uint32_t>(length));
  }
  void natural(std::uint32_t value) { store_le(next(4), value); }
  void real(double value) { store_le(next(number_size), std::bit_cast<std::uint64_t>(value)); }
  void digest(const Digest256& value) {
    std::memcpy(next(digest_size), value.bytes.data(), digest_size);
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::byte* next(std::size_t length) {
    std::byte* const at = bytes_.data() + used_;
    used_ += length;
    return at;
  }

  std::vector<std::byte> bytes_;
  std::size_t used_ = 0;
};

// Seconds within a medium: from its start, and no longer than 31 years. Neither NaN is.
bool is_time(double seconds) { return seconds >= 0 && seconds <= max_side_seconds; }

bool has_times_only(const SideData& data) {
  const SoundLength sound = data.sound.value_or(SoundLength{});
  return std::ranges::all_of(data.timestamps, is_time) &&
         is_time(data.seconds_per_grid.value_or(0)) && is_time(sound.seconds) &&
         is_time(sound.seconds_used);
}

std::optional<double> read_time(const std::byte* at) {
  const auto value = std::bit_cast<double>(load_le<std::uint64_t>(at));
  if (!is_time(value)) return std::nullopt;
  return value;
}

bool read_grid(std::span<const std::byte> body, SideData& out) {
  if (body.size() != grid_size) return false;
  out.grid = Grid{load_le<std::uint32_t>(body.data()), load_le<std::uint32_t>(body.data() + 4),
                  load_le<std::uint32_t>(body.data() + 8)};
  return true;
}

bool read_timestamps(std::span<const std::byte> body, SideData& out) {
  if (body.empty() || body.size() % number_size != 0) return false;
  out.timestamps.reserve(body.size() / number_size);
  for (std::size_t i = 0; i < body.size(); i += number_size) {
    const auto time = read_time(body.data() + i);
    if (!time) return false;
    out.timestamps.push_back(*time);
  }
  return true;
}

bool read_seconds_per_grid(std::span<const std::byte> body, SideData& out) {
  if (body.size() != number_size) return false;
  out.seconds_per_grid = read_time(body.data());
  return out.seconds_per_grid.has_value();
}

bool read_alias_target(std::span<const std::byte> body, SideData& out) {
  if (body.size() != digest_size) return false;
  out.alias_target.emplace();
  std::memcpy(out.alias_target->digest.bytes.data(), body.data(), digest_size);
  return true;
}

bool read_sound(std::span<const std::byte> body, SideData& out) {
  if (body.size() != sound_size) return false;
  const auto seconds = read_time(body.data());
  const auto used = read_time(body.data() + number_size);
  if (!seconds || !used) return false;
  out.sound = SoundLength{*seconds, *used};
  return true;
}

bool read_record(std::uint16_t type, std::span<const std::byte> body, SideData& out) {
  switch (type) {
    case grid_record:
      return read_grid(body, out);
    case timestamps_record:
      return read_timestamps(body, out);
    case seconds_per_grid_record:
      return read_seconds_per_grid(body, out);
    case alias_target_record:
      return read_alias_target(body, out);
    case sound_record:
      return read_sound(body, out);
    default:
      return (type & optional_bit) != 0;
  }
}

}  // namespace

std::size_t SideData::encoded_size() const {
  std::size_t size = 0;
  if (grid) size += record_head_size + grid_size;
  if (!timestamps.empty()) size += record_head_size + timestamps.size() * number_size;
  if (seconds_per_grid) size += record_head_size + number_size;
  if (alias_target) size += record_head_size + digest_size;
  if (sound) size += record_head_size + sound_size;
  return size;
}

std::vector<std::byte> SideData::encode() const {
  const std::size_t size = encoded_size();
  if (size > max_side_bytes) {
    throw Error(ErrorCode::too_large, "too many timestamps: side data is limited to 64 KiB");
  }
  if (!has_times_only(*this)) {
    throw Error(ErrorCode::invalid_argument, "a timestamp is no number of seconds of a medium");
  }
  Writer writer(size);
  if (grid) {
    writer.record(grid_record, grid_size);
    writer.natural(grid->t);
    writer.natural(grid->h);
    writer.natural(grid->w);
  }
  if (!timestamps.empty()) {
    writer.record(timestamps_record, timestamps.size() * number_size);
    for (const double time : timestamps) writer.real(time);
  }
  if (seconds_per_grid) {
    writer.record(seconds_per_grid_record, number_size);
    writer.real(*seconds_per_grid);
  }
  if (alias_target) {
    writer.record(alias_target_record, digest_size);
    writer.digest(alias_target->digest);
  }
  if (sound) {
    writer.record(sound_record, sound_size);
    writer.real(sound->seconds);
    writer.real(sound->seconds_used);
  }
  return writer.take();
}

std::optional<SideData> SideData::decode(std::span<const std::byte> bytes) {
  if (bytes.size() > max_side_bytes) return std::nullopt;
  SideData out;
  int last_type = 0;  // no record has type 0
  while (!bytes.empty()) {
    if (bytes.size() < record_head_size) return std::nullopt;
    const auto type = load_le<std::uint16_t>(bytes.data());
    const auto zero = load_le<std::uint16_t>(bytes.data() + 2);
    const auto length = load_le<std::uint32_t>(bytes.data() + 4);
    bytes = bytes.subspan(record_head_size);
    if (type <= last_type || zero != 0 || length > bytes.size()) return std::nullopt;
    if (!read_record(type, bytes.first(length), out)) return std::nullopt;
    bytes = bytes.subspan(length);
    last_type = type;
  }
  return out;
}

}  // namespace vitrove
