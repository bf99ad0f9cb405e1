// PNG files through decode_image(). Checksums are put right first, or nothing would get past them.
#include <vector>

#include <zlib.h>

#include "fuzz/media_fuzz.h"

namespace {

constexpr std::size_t signature_size = 8;
constexpr std::size_t frame_size = 12;

std::size_t read_u32(const std::vector<std::uint8_t>& bytes, std::size_t at) {
  return std::size_t{bytes[at]} << 24 | std::size_t{bytes[at + 1]} << 16 |
         std::size_t{bytes[at + 2]} << 8 | bytes[at + 3];
}

void repair_checksums(std::vector<std::uint8_t>& bytes) {
  std::size_t at = signature_size;
  while (bytes.size() >= frame_size && at <= bytes.size() - frame_size) {
    const std::size_t length = read_u32(bytes, at);
    if (length > bytes.size() - at - frame_size) return;
    const auto crc = crc32_z(0, bytes.data() + at + 4, length + 4);
    for (std::size_t i = 0; i < 4; ++i) {
      bytes[at + 8 + length + i] = static_cast<std::uint8_t>(crc >> (24 - 8 * i));
    }
    at += length + frame_size;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vitrove;
  std::vector<std::uint8_t> bytes(data, data + size);
  repair_checksums(bytes);
  fuzz::decode_or_refuse(std::as_bytes(std::span(bytes)), MediaFormat::png);
  return 0;
}
