#include "media/wav_size.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr std::size_t wav_head_bytes = 12;
constexpr std::size_t wav_chunk_head_bytes = 8;

// Zero, all bits, and what SoX, GStreamer and ALSA's recorder write.
constexpr std::array<std::uint32_t, 5> unknown_wav_sizes{0, 0xffff'ffff, 0x7fff'ffff, 0x7fff'f000,
                                                         0x8000'0000};

std::uint32_t wav_number(std::span<const std::byte> bytes, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = count; i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  }
  return value;
}

struct WavChunk {
  std::string_view kind;
  std::uint32_t size = 0;
  std::size_t content = 0;  // where it begins

  std::size_t end() const { return content + size + size % 2; }
};

std::optional<WavChunk> wav_chunk_at(std::span<const std::byte> file, std::size_t at) {
  if (at > file.size() || file.size() - at < wav_chunk_head_bytes) return std::nullopt;
  const auto* kind = reinterpret_cast<const char*>(file.data() + at);
  return WavChunk{{kind, 4}, wav_number(file.subspan(at + 4), 4), at + wav_chunk_head_bytes};
}

bool is_wav_name(std::string_view kind) {
  return std::ranges::all_of(kind, [](char c) { return c >= ' ' && c <= '~'; });
}

// An honest zero: the chunks behind it lead to the very end of the file.
bool leads_to_end(std::span<const std::byte> file, std::size_t at) {
  while (at < file.size()) {
    const auto chunk = wav_chunk_at(file, at);
    if (!chunk || !is_wav_name(chunk->kind)) return false;
    at = chunk->end();
  }
  return at == file.size();
}

// Of whole sample frames, as far as the file goes.
WavSize size_to_end(std::span<const std::byte> file, const WavChunk& data, std::size_t frame) {
  auto rest = static_cast<std::uint32_t>(file.size() - data.content);
  if (frame > 0) rest -= static_cast<std::uint32_t>(rest % frame);
  WavSize size{.at = data.content - 4};
  for (std::byte& byte : size.bytes) {
    byte = static_cast<std::byte>(rest & 0xff);
    rest >>= 8;
  }
  return size;
}

bool is_unknown_size(std::uint32_t size, std::size_t rest) {
  // A file of two gigabytes may mean what it says.
  return std::ranges::find(unknown_wav_sizes, size) != unknown_wav_sizes.end() &&
         (size == 0 || size > rest);
}

}  // namespace

void WavSize::put(std::size_t offset, std::span<std::byte> piece) const {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t place = at + i;
    if (place >= offset && place - offset < piece.size()) piece[place - offset] = bytes[i];
  }
}

std::optional<WavSize> find_wav_size(std::span<const std::byte> file, MediaFormat format) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  // RF64 has its sizes elsewhere.
  if (format != MediaFormat::wav || !text.starts_with("RIFF")) return std::nullopt;
  std::size_t frame = 0;
  for (auto chunk = wav_chunk_at(file, wav_head_bytes); chunk;
       chunk = wav_chunk_at(file, chunk->end())) {
    constexpr std::size_t frame_field = 12;
    const auto content = file.subspan(chunk->content);
    if (chunk->kind == "fmt " && content.size() >= frame_field + 2) {
      frame = wav_number(content.subspan(frame_field), 2);
    }
    if (chunk->kind != "data") continue;
    if (!is_unknown_size(chunk->size, content.size())) return std::nullopt;
    if (chunk->size == 0 && leads_to_end(file, chunk->content)) {
      throw Error(ErrorCode::invalid_argument, "the sound has no samples");
    }
    return size_to_end(file, *chunk, frame);
  }
  return std::nullopt;
}

}  // namespace vitrove
