// Media: from the bytes of a file to upright RGB pixels.
//
// This header: naming formats by their content, and pictures. Clips are in video.h, sound in
// audio.h. The page for people is docs/media.md.
//
// Pictures are JPEG, PNG, WebP, GIF, BMP, TIFF, and AVIF and HEIC where libheif is installed (it is
// opened at run time; without it they are a 415 that says so). Everything else that we can name
// (SVG, ICO, JPEG 2000, HTML, ...) is refused by name with unsupported_format (415).
//
// What comes out is the same on every path and for every spelling of a picture:
//  - three channels, 8 bits, rows from top to bottom: gray is repeated, palettes are looked up,
//    CMYK and YCCK are turned into RGB (inks stored inverted, as Adobe and Pillow have it);
//  - 16 bits a channel are scaled (value >> 8), never clamped (B04);
//  - transparency of any form (alpha channel, palette alpha, colour key) is composited on white:
//    round((c * a + 255 * (255 - a)) / 255) per channel, on 8-bit values (B05);
//  - the EXIF orientation of JPEG, PNG (eXIf, or the text of older programs) and WebP, the tag of
//    TIFF and the turns of AVIF and HEIC are applied; where EXIF has no such tag, XMP's counts. A
//    malformed block counts as orientation 1 (B01). Colour profiles and gamma are not applied;
//  - of several pictures the first is taken: the default image of an APNG, the first frame of a
//    WebP or a GIF on its canvas, the first page of a TIFF, the primary item of a HEIC (B09).
// A damaged or truncated file is an error even where a decoder would only warn (B06); what is
// overlooked in a JPEG loses nothing of the picture: zero padding between markers, and zeros for
// the parameters of a baseline scan. Whole JPEGs of kinds that nothing here decodes (12 bits,
// lossless, hierarchical, a height that comes after the pixels) are unsupported_format.
//
// Sizes are checked from the header before anything is allocated (B83). Errors: invalid_argument
// (400) for damaged or empty input, too_large (413), unsupported_format (415), unavailable (503)
// when the budget has no room in time, deadline_exceeded, cancelled. Messages are safe for clients.
//
// Pure functions, thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "vitrove/embedding_key.h"
#include "vitrove/memory_budget.h"
#include "vitrove/types.h"

namespace vitrove {

// Height times width times three channels, rows without padding.
struct RgbImage {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<std::uint8_t> pixels;

  std::size_t row_bytes() const { return std::size_t{3} * width; }
  const std::uint8_t* row(std::size_t y) const { return pixels.data() + y * row_bytes(); }
  std::uint8_t* row(std::size_t y) { return pixels.data() + y * row_bytes(); }
  bool operator==(const RgbImage&) const = default;
};

struct ImageLimits {
  // Bytes of one encoded item.
  std::uint64_t max_item_bytes = std::uint64_t{64} << 20;
  // Width times height: 64 megapixels admit 60-megapixel cameras and 8K frames; such a picture
  // takes 192 MB as RGB.
  std::uint64_t max_pixels = 64'000'000;
  // Width or height alone (the most that JPEG can say).
  std::uint32_t max_side = 65'535;
  // Progressive scans of a JPEG; real files have about ten, hostile ones thousands.
  std::uint32_t max_jpeg_scans = 64;
};

enum class MediaFormat : std::uint8_t {
  unknown,
  jpeg,
  png,
  webp,
  gif,
  bmp,
  tiff,
  avif,
  heic,
  svg,
  ico,
  jpeg_xl,
  jpeg_2000,
  psd,
  pnm,
  pdf,
  html,
  text,  // plain text, JSON, XML
  mp4,
  quicktime,
  webm,  // also Matroska
  avi,
  mpeg_ts,
  flv,
  asf,  // also WMA
  wav,  // also RF64
  mp3,
  flac,
  ogg,
  aac,  // ADTS
  aiff,
  caf,
  amr,
};
// "jpeg", "png", ...; the names used in error messages.
std::string_view to_string(MediaFormat format);

// By content only: names and declared types are never trusted.
MediaFormat sniff(std::span<const std::byte> bytes);

// Nothing for what is no medium (HTML, text, PDF, unknown).
std::optional<Modality> modality_of(MediaFormat format);

// Whether an item of this format can be taken as this modality. Some have two or three: a GIF is a
// picture or a clip, an MP4 a clip or (M4A) a sound.
bool is_decodable(MediaFormat format, Modality modality);

struct DecodedImage {
  RgbImage image;  // upright
  MediaFormat format = MediaFormat::unknown;
  MemoryLease lease;  // of the pixels, and what goes beside them; empty without a budget
};

// What the header of a file says that it holds.
struct MediaShape {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint64_t frames = 1;       // that will be kept
  std::uint64_t work_pixels = 0;  // that have to be decoded for it, over all frames
  std::uint64_t samples = 0;      // of a sound, at the wanted rate
};

struct DecodeContext {
  MemoryBudget* budget = nullptr;  // none: limits per item only
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::stop_token cancel;
  // What the caller will take beside the upright pixels (or samples) of this shape; asked before
  // they are allocated, and part of the lease until the caller shrinks it. What it throws comes
  // out.
  std::function<std::uint64_t(const MediaShape& shape)> bytes_beside = {};
  // How many times smaller a JPEG of these upright sides may be decoded: 1, 2, 4 or 8. Sides are
  // rounded up. Cheap, since the coefficients of what is left out are not computed; other pixels
  // than decoding and resizing would give, so whoever asks for it must say so in the key.
  std::function<std::uint32_t(std::uint32_t width, std::uint32_t height)> jpeg_reduction = {};
};

DecodedImage decode_image(std::span<const std::byte> bytes, const ImageLimits& limits,
                          const DecodeContext& context = {});

// What the key must say about the decoder of this format: one integer, raised whenever the decoded
// bytes may change (golden digests in tests/unit/media hold us to that). Empty for formats that are
// not decoded.
std::vector<PipelineVersion> decoder_versions(MediaFormat format);

// Those of all decoders that an item of this modality may need: what is looked up by a digest alone
// has no format to go by. Of clips and sounds FFmpeg's own versions are part.
std::vector<PipelineVersion> decoder_versions(Modality modality);

// The libraries that decode, as they are on this host. Of those that decode pictures the key says
// nothing: who shares a store had better have the same.
struct MediaLibrary {
  std::string name;
  std::string version;  // empty when it is not there
};
std::vector<MediaLibrary> media_libraries();

}  // namespace vitrove
