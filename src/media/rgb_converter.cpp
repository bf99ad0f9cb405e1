#include "media/rgb_converter.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "media/composite.h"

extern "C" {
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

namespace vitrove {
namespace {

// Decoders hand on what stands in the stream, which need not be a value of its type.
template <typename Enum>
int as_number(const Enum& value) {
  static_assert(sizeof(Enum) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &value, sizeof number);
  return number;
}

// The same bytes on every CPU.
constexpr int scaler_flags = SWS_BILINEAR | SWS_ACCURATE_RND | SWS_BITEXACT | SWS_FULL_CHR_H_INT;

bool has_alpha(int format) {
  const AVPixFmtDescriptor* known = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(format));
  return known != nullptr && (known->flags & (AV_PIX_FMT_FLAG_ALPHA | AV_PIX_FMT_FLAG_PAL)) != 0;
}

bool is_full_range(const AVFrame& frame) {
  const bool is_jpeg = frame.format == AV_PIX_FMT_YUVJ420P || frame.format == AV_PIX_FMT_YUVJ422P ||
                       frame.format == AV_PIX_FMT_YUVJ444P;
  return is_jpeg || as_number(frame.color_range) == AVCOL_RANGE_JPEG;
}

}  // namespace

void RgbConverter::FreeScaler::operator()(SwsContext* scaler) const { sws_freeContext(scaler); }

RgbConverter::RgbConverter(const AVFrame& first)
    : width_(first.width),
      height_(first.height),
      format_(first.format),
      matrix_(as_number(first.colorspace)),
      is_full_range_(is_full_range(first)),
      has_alpha_(has_alpha(first.format)) {
  const AVPixelFormat target = has_alpha_ ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24;
  scaler_.reset(sws_getContext(width_, height_, static_cast<AVPixelFormat>(format_), width_,
                               height_, target, scaler_flags, nullptr, nullptr, nullptr));
  if (!scaler_) {
    throw Error(ErrorCode::unsupported_format, "the pixels of this video are not supported");
  }
  // Refused for pixels that are RGB already, which need none of it.
  constexpr int one = 1 << 16;
  sws_setColorspaceDetails(scaler_.get(), sws_getCoefficients(matrix_), is_full_range_ ? 1 : 0,
                           sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, one, one);
  buffer_->width = width_;
  buffer_->height = height_;
  buffer_->format = target;
  if (av_frame_get_buffer(buffer_.get(), 64) < 0) throw std::bad_alloc();
}

bool RgbConverter::takes(const AVFrame& frame) const {
  return frame.width == width_ && frame.height == height_ && frame.format == format_ &&
         as_number(frame.colorspace) == matrix_ && is_full_range(frame) == is_full_range_;
}

RgbImage RgbConverter::convert(const AVFrame& frame) {
  const int rows = sws_scale(scaler_.get(), frame.data, frame.linesize, 0, height_, buffer_->data,
                             buffer_->linesize);
  if (rows != height_) throw Error(ErrorCode::invalid_argument, "a frame cannot be converted");
  RgbImage image =
      allocate_image(static_cast<std::uint32_t>(width_), static_cast<std::uint32_t>(height_));
  for (std::size_t y = 0; y < image.height; ++y) {
    const std::uint8_t* from =
        buffer_->data[0] + static_cast<std::ptrdiff_t>(y) * buffer_->linesize[0];
    if (has_alpha_) {
      composite_row(from, image.row(y), image.width);
    } else {
      std::copy_n(from, image.row_bytes(), image.row(y));
    }
  }
  return image;
}

}  // namespace vitrove
