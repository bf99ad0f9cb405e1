// What Vitrove and its Mooncake helper say to each other over a Unix socket.
//
// A frame is a header of 24 bytes and a payload; numbers are in the host's byte order, since both
// ends are on one machine. Vitrove asks with a call id that it never uses twice, the helper answers
// with that id. A frame of type `map` carries one descriptor (SCM_RIGHTS) with its header.
//
//   header   u32 magic, u16 version, u16 type, u64 call, u32 payload bytes, u32 zero
//   items    u32 count, then for each: u16 key bytes, u16 runs, key, runs of
//            (u32 region, u32 zero, u64 offset, u64 bytes)
//   answers  u32 count, then for each: i64 code, u64 size
//   region   u32 region, u32 zero, u64 bytes
//   setup, started, state    JSON
//
// Memory is named by region and offset, never by address. Both ends check every number before they
// use it; a frame that is not as written here ends the helper. The Python helper has the same
// format in helper.py.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vitrove::mooncake::wire {

inline constexpr std::uint32_t magic = 0x4B4D5456;  // "VTMK"
inline constexpr std::uint16_t version = 1;
inline constexpr std::size_t header_bytes = 24;
inline constexpr std::uint32_t max_payload_bytes = 4U << 20;
inline constexpr std::size_t max_items = 1024;
inline constexpr std::size_t max_key_bytes = 512;

enum class Type : std::uint16_t {
  setup = 1,   // to the helper: connect to the master
  map = 2,     // region; answered when it is registered, with the set-up or after it
  unmap = 3,   // region; answered
  put = 4,     // items; answered: 0, or a code below zero
  get = 5,     // items; answered: bytes or a code, and the real size where it is known
  exist = 6,   // items without runs; answered: 1 with the size, 0, or a code
  remove = 7,  // items without runs; answered: 0 or a code
  answer = 16,
  started = 17,  // the helper has loaded Mooncake: provider, multi_buffer
  state = 18,    // the set-up has ended: ok, code, detail
};

struct Header {
  Type type = Type::answer;
  std::uint64_t call = 0;
  std::uint32_t payload_bytes = 0;
};

struct Run {
  std::uint32_t region = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Run&) const = default;
};

struct Item {
  std::string key;
  std::vector<Run> runs;
  bool operator==(const Item&) const = default;
};

struct Answer {
  std::int64_t code = 0;  // Mooncake's own
  std::uint64_t size = 0;
  bool operator==(const Answer&) const = default;
};

struct Region {
  std::uint32_t number = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Region&) const = default;
};

using Payload = std::vector<std::byte>;

std::array<std::byte, header_bytes> encode(const Header& header);
Payload encode(std::span<const Item> items);
Payload encode(std::span<const Answer> answers);
Payload encode(const Region& region);

// Nothing when the bytes are not exactly one such thing within the limits above.
std::optional<Header> decode_header(std::span<const std::byte, header_bytes> bytes);
std::optional<std::vector<Item>> decode_items(std::span<const std::byte> bytes);
std::optional<std::vector<Answer>> decode_answers(std::span<const std::byte> bytes);
std::optional<Region> decode_region(std::span<const std::byte> bytes);

// Whether the run lies inside a region of that size.
bool is_inside(const Run& run, std::uint64_t region_bytes);

}  // namespace vitrove::mooncake::wire
