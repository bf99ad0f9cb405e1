// Shared by the fuzz targets of media/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "fuzz/check.h"
#include "vitrove/error.h"
#include "vitrove/media.h"

namespace vitrove::fuzz {

inline std::span<const std::byte> as_bytes(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Either a whole picture or an Error of the kinds that a client may cause.
inline void decode_or_refuse(std::span<const std::byte> bytes, MediaFormat format) {
  if (sniff(bytes) != format) return;
  ImageLimits limits;
  limits.max_pixels = 1 << 20;
  limits.max_jpeg_scans = 16;
  MemoryBudget budget(std::uint64_t{64} << 20);
  try {
    const DecodedImage decoded = decode_image(bytes, limits, {.budget = &budget});
    const RgbImage& image = decoded.image;
    check(image.width > 0 && image.height > 0, "a picture has pixels");
    check(image.pixels.size() == std::size_t{3} * image.width * image.height,
          "three bytes a pixel");
    check(budget.used() == image.pixels.size(), "the lease is that of the pixels");
  } catch (const Error& error) {
    const int status = http_status(error.code());
    check(status == 400 || status == 413 || status == 415, "only errors that a client can cause");
  }
  check(budget.used() == 0, "nothing is held at the end");
}

}  // namespace vitrove::fuzz
