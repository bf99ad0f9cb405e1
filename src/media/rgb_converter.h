// Frames of a video decoder to RGB pixels.
#pragma once

#include <memory>

#include "media/ffmpeg_source.h"

struct SwsContext;

namespace vitrove {

// For frames of one size, pixel format, colour matrix and range, those of the first one.
class RgbConverter {
 public:
  explicit RgbConverter(const AVFrame& first);
  RgbConverter(const RgbConverter&) = delete;
  RgbConverter& operator=(const RgbConverter&) = delete;

  bool takes(const AVFrame& frame) const;
  RgbImage convert(const AVFrame& frame);

 private:
  struct FreeScaler {
    void operator()(SwsContext* scaler) const;
  };

  int width_;
  int height_;
  int format_;
  int matrix_;
  bool is_full_range_;
  bool has_alpha_;
  std::unique_ptr<SwsContext, FreeScaler> scaler_;
  // With the margins that vector code may write to.
  FfmpegFrame buffer_ = make_frame();
};

}  // namespace vitrove
