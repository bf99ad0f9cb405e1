// WebP through libwebp and its demuxer.
//
// Still and animated files take one path: the first frame is put on a white canvas. Of a still
// picture that frame is the whole canvas.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include <webp/decode.h>
#include <webp/demux.h>

#include "media/composite.h"
#include "media/decode_job.h"
#include "media/xmp.h"

namespace vitrove {
namespace {

struct DeleteDemuxer {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};
using Demuxer = std::unique_ptr<WebPDemuxer, DeleteDemuxer>;

WebPData as_data(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

// The size that the RIFF header declares must be there; the demuxer alone is content with less.
void check_riff_size(std::span<const std::byte> bytes) {
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    size |= std::to_integer<std::uint64_t>(bytes[4 + i]) << (8 * i);
  }
  if (size + 8 > bytes.size()) throw_damaged(MediaFormat::webp, "shorter than its RIFF size");
}

class Frame {
 public:
  explicit Frame(const WebPDemuxer* demuxer) {
    if (!WebPDemuxGetFrame(demuxer, 1, &iterator_)) {
      throw_damaged(MediaFormat::webp, "no frame");
    }
    if (WebPGetFeatures(data(), size(), &features_) != VP8_STATUS_OK ||
        features_.width != iterator_.width || features_.height != iterator_.height) {
      WebPDemuxReleaseIterator(&iterator_);
      throw_damaged(MediaFormat::webp, "bad frame header");
    }
  }
  ~Frame() { WebPDemuxReleaseIterator(&iterator_); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  const std::uint8_t* data() const { return iterator_.fragment.bytes; }
  std::size_t size() const { return iterator_.fragment.size; }
  std::uint32_t width() const { return static_cast<std::uint32_t>(iterator_.width); }
  std::uint32_t height() const { return static_cast<std::uint32_t>(iterator_.height); }
  std::uint32_t left() const { return static_cast<std::uint32_t>(iterator_.x_offset); }
  std::uint32_t top() const { return static_cast<std::uint32_t>(iterator_.y_offset); }
  bool has_alpha() const { return features_.has_alpha != 0; }

  bool covers(const RgbImage& canvas) const {
    return left() == 0 && top() == 0 && width() == canvas.width && height() == canvas.height;
  }
  bool lies_within(const RgbImage& canvas) const {
    return left() <= canvas.width && width() <= canvas.width - left() && top() <= canvas.height &&
           height() <= canvas.height - top();
  }

 private:
  WebPIterator iterator_{};
  WebPBitstreamFeatures features_{};
};

void check(const std::uint8_t* decoded) {
  if (decoded == nullptr) throw_damaged(MediaFormat::webp, "bad bitstream");
}

// `to` is the frame's first pixel on the canvas.
void decode_opaque(const Frame& frame, std::uint8_t* to, const RgbImage& canvas) {
  const std::size_t room = canvas.pixels.size() - static_cast<std::size_t>(to - canvas.row(0));
  check(WebPDecodeRGBInto(frame.data(), frame.size(), to, room,
                          static_cast<int>(canvas.row_bytes())));
}

void decode_transparent(const Frame& frame, std::uint8_t* to, const RgbImage& canvas) {
  const std::size_t row_bytes = std::size_t{4} * frame.width();
  std::vector<std::uint8_t> rgba(row_bytes * frame.height());
  check(WebPDecodeRGBAInto(frame.data(), frame.size(), rgba.data(), rgba.size(),
                           static_cast<int>(row_bytes)));
  for (std::size_t y = 0; y < frame.height(); ++y) {
    composite_row(rgba.data() + y * row_bytes, to + y * canvas.row_bytes(), frame.width());
  }
}

template <typename Read>
std::optional<Orientation> read_chunk_of(const WebPDemuxer* demuxer, const char* kind, Read read) {
  WebPChunkIterator chunk{};
  if (!WebPDemuxGetChunk(demuxer, kind, 1, &chunk)) return std::nullopt;
  const auto orientation =
      read(std::string_view(reinterpret_cast<const char*>(chunk.chunk.bytes), chunk.chunk.size));
  WebPDemuxReleaseChunkIterator(&chunk);
  return orientation;
}

Orientation orientation_of(const WebPDemuxer* demuxer) {
  const auto exif = read_chunk_of(demuxer, "EXIF", [](std::string_view block) {
    return exif_orientation(std::as_bytes(std::span(block)));
  });
  if (exif) return *exif;
  return read_chunk_of(demuxer, "XMP ", xmp_orientation).value_or(Orientation::upright);
}

}  // namespace

DecodedImage decode_webp(std::span<const std::byte> bytes, DecodeJob& job) {
  check_riff_size(bytes);
  const WebPData data = as_data(bytes);
  const Demuxer demuxer(WebPDemux(&data));
  if (!demuxer) throw_damaged(MediaFormat::webp, "bad container");
  const std::uint32_t width = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH);
  const std::uint32_t height = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT);
  job.check_size(width, height);

  const Frame frame(demuxer.get());
  const Orientation orientation = orientation_of(demuxer.get());
  // Lossless decoding holds four bytes a pixel, lossy with alpha one; RGBA comes as a whole.
  const std::uint64_t frame_pixels = std::uint64_t{frame.width()} * frame.height();
  job.reserve(width, height, orientation, frame_pixels * (frame.has_alpha() ? 9 : 5));
  RgbImage canvas = allocate_image(width, height);
  if (!frame.lies_within(canvas)) throw_damaged(MediaFormat::webp, "frame beyond the canvas");
  if (!frame.covers(canvas)) std::ranges::fill(canvas.pixels, std::uint8_t{255});
  std::uint8_t* to = canvas.row(frame.top()) + std::size_t{3} * frame.left();
  if (frame.has_alpha()) {
    decode_transparent(frame, to, canvas);
  } else {
    decode_opaque(frame, to, canvas);
  }
  return job.finish(std::move(canvas), MediaFormat::webp, orientation);
}

}  // namespace vitrove
