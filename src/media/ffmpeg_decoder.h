// One stream's decoder: packets in, frames out, every complaint an error.
#pragma once

#include <cstdint>
#include <memory>

#include "media/ffmpeg_source.h"

namespace vitrove {

class FfmpegDecoder {
 public:
  // `max_pixels` bounds a frame of video before it is allocated. Throws Error{unsupported_format}
  // for codecs that we do not take.
  FfmpegDecoder(FfmpegSource& source, std::int64_t max_pixels);
  FfmpegDecoder(const FfmpegDecoder&) = delete;
  FfmpegDecoder& operator=(const FfmpegDecoder&) = delete;

  // The next frame in the order of showing, valid until the next call; null at the end. Throws
  // Error when the stream is damaged.
  const AVFrame* next();

 private:
  struct FreeContext {
    void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
  };

  void feed();

  FfmpegSource& source_;
  std::unique_ptr<AVCodecContext, FreeContext> context_;
  FfmpegPacket packet_ = make_packet();
  FfmpegFrame frame_ = make_frame();
};

}  // namespace vitrove
