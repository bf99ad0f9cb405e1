// The chunk level of PNG: which parts of a file the decoder gets to see.
//
// Every chunk's CRC is checked here, also of those that nobody reads. Only what makes pixels is
// passed on (IHDR, PLTE, tRNS, IDAT, IEND, and unknown critical chunks, which the decoder refuses);
// profiles and animation frames never reach a decompressor, whatever they would inflate to, and of
// texts only those do that may tell which way is up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "media/png_text.h"

namespace vitrove {

struct PngParts {
  std::uint32_t width = 0;  // as the header has it
  std::uint32_t height = 0;
  std::uint32_t bits_per_pixel = 0;                // 0: of no known kind, which the decoder refuses
  std::uint64_t data_bytes = 0;                    // of all IDAT chunks together
  std::vector<std::span<const std::byte>> pieces;  // of the file, in order; neighbours are merged
  std::span<const std::byte> exif;                 // content of eXIf, wherever it stands
  PngText raw_exif;                                // the same as text, of older programs
  PngText xmp;
};

// Whether the data can inflate to so many pixels: deflate makes at most 1032 bytes of one (RFC
// 1951: 258 bytes of a two-bit match). A file of a few bytes that claims millions of pixels is
// refused by this before anything is allocated.
bool could_hold_its_pixels(const PngParts& parts);

// Throws Error{invalid_argument} on a damaged or incomplete file.
PngParts split_png(std::span<const std::byte> file);

}  // namespace vitrove
