#include "media/png_chunks.h"

#include <array>
#include <cstdint>
#include <string_view>

#include <zlib.h>

#include "media/decode_job.h"

namespace vitrove {
namespace {

constexpr std::size_t signature_size = 8;
constexpr std::size_t header_size = 13;
constexpr std::size_t frame_size = 12;  // length, type, CRC

struct Chunk {
  std::string_view type;
  std::span<const std::byte> data;
  std::span<const std::byte> whole;

  bool is_critical() const { return (type[0] & 0x20) == 0; }
};

std::uint32_t read_u32(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return value;
}

Chunk read_chunk(std::span<const std::byte> rest) {
  if (rest.size() < frame_size) throw_damaged(MediaFormat::png, "ends within a chunk header");
  const std::size_t length = read_u32(rest);
  if (length > rest.size() - frame_size) throw_damaged(MediaFormat::png, "ends within a chunk");
  const auto checked = rest.subspan(4, 4 + length);
  const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(checked.data()), checked.size());
  if (crc != read_u32(rest.subspan(8 + length))) throw_damaged(MediaFormat::png, "bad CRC");
  return {std::string_view(reinterpret_cast<const char*>(checked.data()), 4), checked.subspan(4),
          rest.first(length + frame_size)};
}

void append(std::vector<std::span<const std::byte>>& pieces, std::span<const std::byte> piece) {
  if (!pieces.empty() && pieces.back().data() + pieces.back().size() == piece.data()) {
    pieces.back() = std::span(pieces.back().data(), pieces.back().size() + piece.size());
    return;
  }
  pieces.push_back(piece);
}

// 0 for what is no PNG; the decoder says so.
std::uint32_t channels_of(std::uint8_t color_type) {
  switch (color_type) {
    case 0:
    case 3:
      return 1;
    case 2:
      return 3;
    case 4:
      return 2;
    case 6:
      return 4;
    default:
      return 0;
  }
}

}  // namespace

bool could_hold_its_pixels(const PngParts& parts) {
  constexpr std::uint64_t most_per_byte = 1032;
  const std::uint64_t bits = std::uint64_t{parts.width} * parts.height * parts.bits_per_pixel;
  return bits / 8 <= parts.data_bytes * most_per_byte;
}

PngParts split_png(std::span<const std::byte> file) {
  PngParts parts;
  parts.pieces.push_back(file.first(signature_size));
  auto rest = file.subspan(signature_size);
  const Chunk header = read_chunk(rest);
  if (header.type != "IHDR" || header.data.size() != header_size) {
    throw_damaged(MediaFormat::png, "no header");
  }
  parts.width = read_u32(header.data);
  parts.height = read_u32(header.data.subspan(4));
  parts.bits_per_pixel = std::to_integer<std::uint32_t>(header.data[8]) *
                         channels_of(std::to_integer<std::uint8_t>(header.data[9]));

  bool had_data = false;
  bool is_after_data = false;
  for (;;) {
    const Chunk chunk = read_chunk(rest);
    rest = rest.subspan(chunk.whole.size());
    const bool is_data = chunk.type == "IDAT";
    if (is_data && is_after_data) throw_damaged(MediaFormat::png, "IDAT chunks are interrupted");
    had_data = had_data || is_data;
    if (is_data) parts.data_bytes += chunk.data.size();
    is_after_data = had_data && !is_data;
    if (chunk.is_critical() || chunk.type == "tRNS") append(parts.pieces, chunk.whole);
    if (chunk.type == "eXIf" && parts.exif.empty()) parts.exif = chunk.data;
    const PngText text(chunk.type, chunk.data);
    if (text.keyword() == "Raw profile type exif") parts.raw_exif = text;
    if (text.keyword() == "XML:com.adobe.xmp") parts.xmp = text;
    if (chunk.type == "IEND") return parts;
  }
}

}  // namespace vitrove
