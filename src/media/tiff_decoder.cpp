// TIFF through libtiff, which undoes the compression; what the samples mean is decided here, with
// the arithmetic of the other formats.
//
// Taken: gray (1, 2, 4, 8, 16 bits), palettes, RGB and CMYK (8, 16), each with or without alpha,
// and YCbCr inside JPEG; in strips or tiles, interleaved or in planes.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "media/composite.h"
#include "media/decode_job.h"
#include "media/tiff_source.h"
#include "media/xmp.h"

namespace vitrove {
namespace {

constexpr std::uint16_t most_channels = 8;

enum class Alpha : std::uint8_t { none, plain, multiplied };

struct Layout {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint16_t bits = 0;
  std::uint16_t samples = 0;
  std::uint16_t photometric = 0;
  bool is_planar = false;
  bool is_jpeg = false;
  bool is_tiled = false;
  std::uint32_t block_width = 0;
  std::uint32_t block_height = 0;
  Alpha alpha = Alpha::none;
  Orientation orientation = Orientation::upright;

  std::size_t colors() const {
    switch (photometric) {
      case PHOTOMETRIC_RGB:
        return 3;
      case PHOTOMETRIC_SEPARATED:
        return 4;
      default:
        return 1;
    }
  }
  std::size_t samples_in_block() const { return is_planar ? 1 : samples; }
};

[[noreturn]] void throw_unknown_tiff() {
  throw Error(ErrorCode::unsupported_format,
              "this kind of tiff is not supported (supported: gray, palette, rgb, cmyk)");
}

Alpha alpha_of(const TiffSource& source, std::size_t colors, std::uint16_t samples) {
  if (samples <= colors) return Alpha::none;
  std::uint16_t count = 0;
  std::uint16_t* kinds = nullptr;
  if (TIFFGetFieldDefaulted(source.tiff(), TIFFTAG_EXTRASAMPLES, &count, &kinds) != 1 ||
      count == 0) {
    return Alpha::none;
  }
  if (kinds[0] == EXTRASAMPLE_UNASSALPHA) return Alpha::plain;
  return kinds[0] == EXTRASAMPLE_ASSOCALPHA ? Alpha::multiplied : Alpha::none;
}

void check_kind(const TiffSource& source, const Layout& layout) {
  const bool is_low = layout.bits == 1 || layout.bits == 2 || layout.bits == 4;
  const bool is_whole = layout.bits == 8 || layout.bits == 16;
  const auto format = source.field<std::uint16_t>(TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
  const bool is_number = format == SAMPLEFORMAT_UINT || format == SAMPLEFORMAT_VOID;
  const bool fits = layout.samples >= layout.colors() && layout.samples <= most_channels;
  if (!is_number || !fits) throw_unknown_tiff();
  switch (layout.photometric) {
    case PHOTOMETRIC_MINISBLACK:
    case PHOTOMETRIC_MINISWHITE:
      if (is_whole || (is_low && layout.samples == 1)) return;
      break;
    case PHOTOMETRIC_PALETTE:
      if ((is_low || layout.bits == 8) && layout.samples == 1) return;
      break;
    case PHOTOMETRIC_RGB:
    case PHOTOMETRIC_SEPARATED:
      if (is_whole) return;
      break;
    default:
      break;
  }
  throw_unknown_tiff();
}

// libtiff tells upright where there is no tag, unless it is asked without its defaults.
Orientation orientation_of(const TiffSource& source) {
  std::uint16_t turned = 0;
  if (TIFFGetField(source.tiff(), TIFFTAG_ORIENTATION, &turned) == 1) {
    const bool is_known = turned >= 1 && turned <= 8;
    return is_known ? static_cast<Orientation>(turned) : Orientation::upright;
  }
  std::uint32_t size = 0;
  const char* packet = nullptr;
  if (TIFFGetField(source.tiff(), TIFFTAG_XMLPACKET, &size, &packet) != 1) {
    return Orientation::upright;
  }
  return xmp_orientation({packet, size}).value_or(Orientation::upright);
}

Layout read_layout(const TiffSource& source) {
  TIFF* const tiff = source.tiff();
  Layout layout;
  layout.width = source.field<std::uint32_t>(TIFFTAG_IMAGEWIDTH, 0);
  layout.height = source.field<std::uint32_t>(TIFFTAG_IMAGELENGTH, 0);
  layout.bits = source.field<std::uint16_t>(TIFFTAG_BITSPERSAMPLE, 1);
  layout.samples = source.field<std::uint16_t>(TIFFTAG_SAMPLESPERPIXEL, 1);
  layout.photometric = source.field<std::uint16_t>(TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISWHITE);
  const auto compression = source.field<std::uint16_t>(TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  if (TIFFIsCODECConfigured(compression) == 0) throw_unknown_tiff();
  layout.is_jpeg = compression == COMPRESSION_JPEG;
  if (layout.photometric == PHOTOMETRIC_YCBCR && layout.is_jpeg) {
    TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    layout.photometric = PHOTOMETRIC_RGB;
  }
  layout.is_planar = source.field<std::uint16_t>(TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) ==
                         PLANARCONFIG_SEPARATE &&
                     layout.samples > 1;
  layout.is_tiled = TIFFIsTiled(tiff) != 0;
  if (layout.is_tiled) {
    layout.block_width = source.field<std::uint32_t>(TIFFTAG_TILEWIDTH, 0);
    layout.block_height = source.field<std::uint32_t>(TIFFTAG_TILELENGTH, 0);
  } else {
    const auto rows = source.field<std::uint32_t>(TIFFTAG_ROWSPERSTRIP, layout.height);
    layout.block_width = layout.width;
    layout.block_height = std::min(rows, layout.height);
  }
  layout.orientation = orientation_of(source);
  return layout;
}

// What stands in a JPEG before its pixels do.
struct JpegScans {
  std::uint32_t count = 0;
  bool is_progressive = false;
};

bool has_no_length(unsigned marker) {
  return marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8);  // TEM, RSTn, SOI
}

// Segments are passed over by their lengths: what they hold may look like a marker. Between them
// is compressed data, which never does.
JpegScans count_scans(std::span<const std::byte> jpeg) {
  JpegScans scans;
  for (std::size_t at = 0; at + 1 < jpeg.size();) {
    const auto marker = std::to_integer<unsigned>(jpeg[at + 1]);
    if (jpeg[at] != std::byte{0xff} || marker == 0x00 || marker == 0xff) {
      ++at;
      continue;
    }
    at += 2;
    if (marker == 0xda) ++scans.count;
    if (marker == 0xc2 || marker == 0xca) scans.is_progressive = true;
    if (has_no_length(marker) || at + 1 >= jpeg.size()) continue;
    at += std::to_integer<std::size_t>(jpeg[at]) << 8 | std::to_integer<std::size_t>(jpeg[at + 1]);
  }
  return scans;
}

// libtiff hands a block to libjpeg as a whole, and nobody can stop that. A progressive one is not
// legal in a TIFF.
void check_jpeg_block(std::span<const std::byte> jpeg, const DecodeJob& job) {
  const JpegScans scans = count_scans(jpeg);
  if (scans.is_progressive) {
    throw Error(ErrorCode::unsupported_format, "progressive jpeg in tiff is not supported");
  }
  if (scans.count > job.limits().max_jpeg_scans) {
    throw Error(ErrorCode::too_large, "a jpeg in the tiff file exceeds the limit of " +
                                          std::to_string(job.limits().max_jpeg_scans) + " scans");
  }
}

// One sample of a decoded row, scaled to 8 bits unless it is an index.
class RowOfSamples {
 public:
  RowOfSamples(const std::uint8_t* row, const Layout& layout) : row_(row), bits_(layout.bits) {
    const unsigned most = (1U << std::min<unsigned>(bits_, 8)) - 1;
    scale_ = layout.photometric == PHOTOMETRIC_PALETTE ? 1 : 255 / most;
  }

  std::uint8_t operator[](std::size_t nth) const {
    if (bits_ == 8) return row_[nth];
    if (bits_ == 16) {
      std::uint16_t value = 0;
      std::memcpy(&value, row_ + 2 * nth, sizeof value);
      return static_cast<std::uint8_t>(value >> 8);
    }
    const std::size_t bit = nth * bits_;
    const unsigned shift = 8 - bits_ - static_cast<unsigned>(bit % 8);
    const unsigned value = static_cast<unsigned>(row_[bit / 8]) >> shift & ((1U << bits_) - 1);
    return static_cast<std::uint8_t>(value * scale_);
  }

 private:
  const std::uint8_t* row_;
  unsigned bits_;
  unsigned scale_;
};

// All samples as 8 bits, interleaved, from whatever blocks they are in.
class SampleReader {
 public:
  SampleReader(const TiffSource& source, const Layout& layout, const DecodeJob& job)
      : source_(source), layout_(layout), job_(job), block_(block_bytes(source, layout)) {}

  static std::uint64_t block_bytes(const TiffSource& source, const Layout& layout) {
    return static_cast<std::uint64_t>(layout.is_tiled ? TIFFTileSize64(source.tiff())
                                                      : TIFFStripSize64(source.tiff()));
  }

  std::vector<std::uint8_t> read() {
    std::vector<std::uint8_t> samples(std::size_t{layout_.width} * layout_.height *
                                      layout_.samples);
    const std::uint16_t planes = layout_.is_planar ? layout_.samples : 1;
    for (std::uint16_t plane = 0; plane < planes; ++plane) {
      for (std::uint32_t y = 0; y < layout_.height; y += layout_.block_height) {
        for (std::uint32_t x = 0; x < layout_.width; x += layout_.block_width) {
          job_.check_time();
          read_block(x, y, plane);
          copy_block(x, y, plane, samples);
        }
      }
    }
    return samples;
  }

 private:
  std::uint32_t rows_from(std::uint32_t y) const {
    return std::min(layout_.block_height, layout_.height - y);
  }

  std::size_t row_bytes() const {
    return (std::uint64_t{layout_.block_width} * layout_.samples_in_block() * layout_.bits + 7) / 8;
  }

  void read_block(std::uint32_t x, std::uint32_t y, std::uint16_t plane) {
    TIFF* const tiff = source_.tiff();
    const std::size_t needed =
        row_bytes() * (layout_.is_tiled ? layout_.block_height : rows_from(y));
    if (needed > block_.size()) source_.throw_damaged_tiff();
    const auto size = static_cast<tmsize_t>(block_.size());
    const std::uint32_t nth =
        layout_.is_tiled ? TIFFComputeTile(tiff, x, y, 0, plane) : TIFFComputeStrip(tiff, y, plane);
    if (layout_.is_jpeg) check_jpeg_block(source_.coded_block(nth), job_);
    const tmsize_t count = layout_.is_tiled ? TIFFReadEncodedTile(tiff, nth, block_.data(), size)
                                            : TIFFReadEncodedStrip(tiff, nth, block_.data(), size);
    source_.check();
    if (count < 0 || static_cast<std::size_t>(count) < needed) source_.throw_damaged_tiff();
  }

  void copy_block(std::uint32_t left, std::uint32_t top, std::uint16_t plane,
                  std::vector<std::uint8_t>& samples) const {
    const std::size_t in_block = layout_.samples_in_block();
    const std::uint32_t columns = std::min(layout_.block_width, layout_.width - left);
    for (std::uint32_t y = 0; y < rows_from(top); ++y) {
      const RowOfSamples row(block_.data() + y * row_bytes(), layout_);
      std::uint8_t* to =
          &samples[(std::size_t{top + y} * layout_.width + left) * layout_.samples + plane];
      for (std::size_t x = 0; x < columns; ++x, to += layout_.samples) {
        for (std::size_t i = 0; i < in_block; ++i) to[i] = row[x * in_block + i];
      }
    }
  }

  const TiffSource& source_;
  const Layout& layout_;
  const DecodeJob& job_;
  std::vector<std::uint8_t> block_;
};

class ColorMap {
 public:
  ColorMap(const TiffSource& source, const Layout& layout) {
    if (layout.photometric != PHOTOMETRIC_PALETTE) return;
    std::array<std::uint16_t*, 3> maps{};
    if (TIFFGetField(source.tiff(), TIFFTAG_COLORMAP, &maps[0], &maps[1], &maps[2]) != 1) {
      source.throw_damaged_tiff();
    }
    for (std::size_t i = 0; i < std::size_t{1} << layout.bits; ++i) {
      for (std::size_t c = 0; c < 3; ++c)
        colors_[i][c] = static_cast<std::uint8_t>(maps[c][i] >> 8);
    }
  }

  const std::array<std::uint8_t, 3>& operator[](std::uint8_t index) const { return colors_[index]; }

 private:
  std::array<std::array<std::uint8_t, 3>, 256> colors_{};
};

// Ink takes from the light that black lets through, rounded like Pillow's conversion.
std::uint8_t light_behind(unsigned ink, unsigned black) {
  const unsigned through = 255 - black;
  const unsigned product = ink * through + 128;
  return static_cast<std::uint8_t>(through - ((product + (product >> 8)) >> 8));
}

std::array<std::uint8_t, 3> color_of(const std::uint8_t* samples, const Layout& layout,
                                     const ColorMap& map) {
  switch (layout.photometric) {
    case PHOTOMETRIC_RGB:
      return {samples[0], samples[1], samples[2]};
    case PHOTOMETRIC_PALETTE:
      return map[samples[0]];
    case PHOTOMETRIC_SEPARATED:
      return {light_behind(samples[0], samples[3]), light_behind(samples[1], samples[3]),
              light_behind(samples[2], samples[3])};
    default: {
      const auto gray = static_cast<std::uint8_t>(
          layout.photometric == PHOTOMETRIC_MINISWHITE ? 255 - samples[0] : samples[0]);
      return {gray, gray, gray};
    }
  }
}

std::uint8_t on_white(std::uint8_t color, std::uint8_t alpha, Alpha kind) {
  if (kind == Alpha::none) return color;
  if (kind == Alpha::plain) return composite_on_white(color, alpha);
  return static_cast<std::uint8_t>(std::min(255, color + 255 - alpha));
}

void to_rgb(const std::vector<std::uint8_t>& samples, const Layout& layout, const ColorMap& map,
            RgbImage& image) {
  const std::uint8_t* from = samples.data();
  for (std::size_t i = 0; i < image.pixels.size(); i += 3, from += layout.samples) {
    const auto color = color_of(from, layout, map);
    const std::uint8_t alpha = layout.alpha == Alpha::none ? 255 : from[layout.colors()];
    for (std::size_t c = 0; c < 3; ++c) {
      image.pixels[i + c] = on_white(color[c], alpha, layout.alpha);
    }
  }
}

}  // namespace

DecodedImage decode_tiff(std::span<const std::byte> bytes, DecodeJob& job) {
  const TiffSource source(bytes);
  Layout layout = read_layout(source);
  job.check_size(layout.width, layout.height);
  job.check_size(layout.block_width, layout.block_height);
  check_kind(source, layout);
  source.check();
  layout.alpha = alpha_of(source, layout.colors(), layout.samples);
  const ColorMap map(source, layout);

  const std::uint64_t pixels = std::uint64_t{layout.width} * layout.height;
  const std::uint64_t block_bytes = SampleReader::block_bytes(source, layout);
  // Two bytes a coefficient, of blocks in several scans; libtiff allows libjpeg no more.
  constexpr std::uint64_t most_coefficient_bytes = 100'000'000;
  const std::uint64_t coefficients =
      layout.is_jpeg ? std::min(2 * layout.samples * pixels, most_coefficient_bytes) : 0;
  job.reserve(layout.width, layout.height, layout.orientation,
              pixels * layout.samples + block_bytes + coefficients + bytes.size());
  const auto samples = SampleReader(source, layout, job).read();
  RgbImage image = allocate_image(layout.width, layout.height);
  to_rgb(samples, layout, map, image);
  return job.finish(std::move(image), MediaFormat::tiff, layout.orientation);
}

}  // namespace vitrove
