// PNG through libspng.
//
// Pictures without any transparency are read as RGB, all others as RGBA and composited, whatever
// their colour type: libspng turns palettes, gray, low bit depths and colour keys into that one
// form, and 16 bits into their upper 8.
#include <algorithm>
#include <cstring>
#include <memory>

#include <spng.h>

#include "media/composite.h"
#include "media/decode_job.h"
#include "media/png_chunks.h"
#include "media/xmp.h"

namespace vitrove {
namespace {

// Hands the pieces to libspng as if they were one file.
class PieceStream {
 public:
  explicit PieceStream(std::vector<std::span<const std::byte>> pieces)
      : pieces_(std::move(pieces)) {}

  static int read(spng_ctx*, void* user, void* to, std::size_t size) {
    return static_cast<PieceStream*>(user)->copy_to(static_cast<std::byte*>(to), size);
  }

 private:
  int copy_to(std::byte* to, std::size_t size) {
    while (size > 0) {
      if (next_ == pieces_.size()) return SPNG_IO_EOF;
      auto& piece = pieces_[next_];
      const std::size_t count = std::min(size, piece.size());
      std::memcpy(to, piece.data(), count);
      piece = piece.subspan(count);
      to += count;
      size -= count;
      if (piece.empty()) ++next_;
    }
    return SPNG_OK;
  }

  std::vector<std::span<const std::byte>> pieces_;
  std::size_t next_ = 0;
};

struct FreeContext {
  void operator()(spng_ctx* context) const { spng_ctx_free(context); }
};

void check(int status) {
  if (status == SPNG_OK) return;
  if (status == SPNG_EMEM) throw std::bad_alloc();
  throw_damaged(MediaFormat::png, spng_strerror(status));
}

class PngReader {
 public:
  PngReader(std::vector<std::span<const std::byte>> pieces, const DecodeJob& job)
      : job_(job), stream_(std::move(pieces)), context_(spng_ctx_new(0)) {
    if (!context_) throw std::bad_alloc();
    // split_png() has checked them all.
    check(spng_set_crc_action(context_.get(), SPNG_CRC_USE, SPNG_CRC_USE));
    check(spng_set_png_stream(context_.get(), PieceStream::read, &stream_));
    check(spng_get_ihdr(context_.get(), &header_));
  }

  std::uint32_t width() const { return header_.width; }
  std::uint32_t height() const { return header_.height; }
  bool is_interlaced() const { return header_.interlace_method != SPNG_INTERLACE_NONE; }

  bool has_transparency() {
    spng_trns key{};
    return header_.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA ||
           header_.color_type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA ||
           spng_get_trns(context_.get(), &key) == SPNG_OK;
  }

  void read_rgb(RgbImage& image) {
    if (is_interlaced()) return read_whole(SPNG_FMT_RGB8, image.pixels);
    read_rows(
        SPNG_FMT_RGB8, [&](std::size_t y) { return image.row(y); }, image.row_bytes(),
        [](std::size_t) {});
  }

  void read_rgba(RgbImage& image) {
    const std::size_t row_bytes = std::size_t{4} * image.width;
    if (is_interlaced()) {
      std::vector<std::uint8_t> rgba(row_bytes * image.height);
      read_whole(SPNG_FMT_RGBA8, rgba);
      composite_row(rgba.data(), image.pixels.data(), rgba.size() / 4);
      return;
    }
    std::vector<std::uint8_t> row(row_bytes);
    read_rows(
        SPNG_FMT_RGBA8, [&](std::size_t) { return row.data(); }, row_bytes,
        [&](std::size_t y) { composite_row(row.data(), image.row(y), image.width); });
  }

 private:
  void read_whole(spng_format format, std::span<std::uint8_t> to) {
    check(spng_decode_image(context_.get(), to.data(), to.size(), format, SPNG_DECODE_TRNS));
  }

  template <typename RowAt, typename Use>
  void read_rows(spng_format format, RowAt row_at, std::size_t row_bytes, Use use) {
    check(spng_decode_image(context_.get(), nullptr, 0, format,
                            SPNG_DECODE_TRNS | SPNG_DECODE_PROGRESSIVE));
    for (std::size_t y = 0; y < header_.height; ++y) {
      if (y % 64 == 0) job_.check_time();
      const int status = spng_decode_row(context_.get(), row_at(y), row_bytes);
      const bool is_last = y + 1 == header_.height;
      if (!(is_last && status == SPNG_EOI)) check(status);
      use(y);
    }
  }

  const DecodeJob& job_;
  PieceStream stream_;
  std::unique_ptr<spng_ctx, FreeContext> context_;
  spng_ihdr header_{};
};

// As Pillow has it: the chunk that is meant for it before the text of older programs.
Orientation orientation_of(const PngParts& parts) {
  std::optional<Orientation> exif;
  if (!parts.exif.empty()) {
    exif = exif_orientation(parts.exif);
  } else if (!parts.raw_exif.keyword().empty()) {
    exif = exif_orientation(raw_profile(parts.raw_exif.read()));
  }
  if (exif) return *exif;
  return xmp_orientation(parts.xmp.read()).value_or(Orientation::upright);
}

}  // namespace

DecodedImage decode_png(std::span<const std::byte> bytes, DecodeJob& job) {
  const PngParts parts = split_png(bytes);
  job.check_size(parts.width, parts.height);
  if (!could_hold_its_pixels(parts)) throw_damaged(MediaFormat::png, "too little data");
  PngReader reader(parts.pieces, job);
  const Orientation orientation = orientation_of(parts);
  const bool has_transparency = reader.has_transparency();
  // libspng keeps a few rows of at most eight bytes a pixel; interlaced RGBA comes as a whole.
  const std::uint64_t rows = std::uint64_t{64} * reader.width();
  const bool is_whole = has_transparency && reader.is_interlaced();
  const std::uint64_t whole = is_whole ? std::uint64_t{4} * reader.width() * reader.height() : 0;
  job.reserve(reader.width(), reader.height(), orientation, rows + whole);
  RgbImage image = allocate_image(reader.width(), reader.height());
  if (has_transparency) {
    reader.read_rgba(image);
  } else {
    reader.read_rgb(image);
  }
  return job.finish(std::move(image), MediaFormat::png, orientation);
}

}  // namespace vitrove
