// Ways to damage one picture or packet of a committed clip and leave its container as it was.
#pragma once

#include <algorithm>
#include <bit>

#include "clips.h"

namespace vitrove::test {

inline Bytes with_bytes(Bytes bytes, std::size_t at, std::string_view fresh) {
  for (const char c : fresh) bytes.at(at++) = static_cast<std::byte>(c);
  return bytes;
}

// A block of a Matroska file: where its id stands, and where its packet begins.
struct BlockPlace {
  std::size_t id = 0;
  std::size_t packet = 0;
};

class MatroskaWalk {
 public:
  explicit MatroskaWalk(const Bytes& file) : file_(file) { walk(0, file.size()); }
  const std::vector<BlockPlace>& blocks() const { return blocks_; }

 private:
  static constexpr std::uint64_t segment = 0x18538067;
  static constexpr std::uint64_t cluster = 0x1f43b675;
  static constexpr std::uint64_t simple_block = 0xa3;

  std::uint64_t take(std::size_t& at, bool with_marker) const {
    const auto first = std::to_integer<std::uint8_t>(file_.at(at));
    const int length = std::countl_zero(first) + 1;
    std::uint64_t value = with_marker ? first : first & (0xffU >> length);
    for (int i = 1; i < length; ++i) {
      value =
          value << 8 | std::to_integer<std::uint64_t>(file_.at(at + static_cast<std::size_t>(i)));
    }
    at += static_cast<std::size_t>(length);
    return value;
  }

  void walk(std::size_t at, std::size_t end) {
    while (at < end) {
      const std::size_t start = at;
      const std::uint64_t kind = take(at, true);
      const std::uint64_t size = take(at, false);
      if (kind == segment || kind == cluster) walk(at, std::min<std::size_t>(end, at + size));
      if (kind == simple_block) blocks_.push_back({start, at + 4});  // the track, time, flags
      at += size;
    }
  }

  const Bytes& file_;
  std::vector<BlockPlace> blocks_;
};

inline Bytes with_block_id(const char* name, std::size_t nth, std::string_view id) {
  const Bytes whole = clip_file(name);
  return with_bytes(whole, MatroskaWalk(whole).blocks().at(nth).id, id);
}

inline Bytes with_packet(const char* name, std::size_t nth, std::string_view start) {
  const Bytes whole = clip_file(name);
  return with_bytes(whole, MatroskaWalk(whole).blocks().at(nth).packet, start);
}

// Where the first sub-block of a picture's compressed pixels begins: at its length.
inline std::size_t gif_pixels(const Bytes& gif, std::size_t nth) {
  const auto byte = [&](std::size_t at) { return std::to_integer<std::size_t>(gif.at(at)); };
  const auto after_table = [&](std::size_t flags, std::size_t at) {
    return at + ((byte(flags) & 0x80) != 0 ? std::size_t{3} << ((byte(flags) & 7) + 1) : 0);
  };
  std::size_t at = after_table(10, 13);
  for (;;) {
    const bool is_picture = byte(at) == 0x2c;
    at = is_picture ? after_table(at + 9, at + 10) + 1 : at + 2;
    if (is_picture && nth-- == 0) return at;
    while (byte(at) != 0) at += 1 + byte(at);
    ++at;
  }
}

// Codes that nothing before has given a meaning.
inline Bytes gif_with_bad_pixels(std::size_t nth) {
  const Bytes whole = clip_file("moving.gif");
  const std::size_t at = gif_pixels(whole, nth);
  const auto length = std::to_integer<std::size_t>(whole.at(at));
  return with_bytes(whole, at + 9, std::string(length - 8, '\xff'));
}

}  // namespace vitrove::test
