// One stream's decoder: packets in, frames out, every complaint an error.
#pragma once

#include <cstdint>
#include <memory>

#include "media/ffmpeg_log.h"
#include "media/ffmpeg_source.h"

namespace vitrove {

// What a frame of video may take.
struct FrameRoom {
  std::int64_t pixels = 0;        // as they are coded
  std::uint32_t pixel_bytes = 0;  // over all planes
};

class FfmpegDecoder {
 public:
  // Frames of video that need more than `room` are not allocated. Throws
  // Error{unsupported_format} for codecs that we do not take.
  FfmpegDecoder(FfmpegSource& source, FrameRoom room);
  FfmpegDecoder(const FfmpegDecoder&) = delete;
  FfmpegDecoder& operator=(const FfmpegDecoder&) = delete;

  // The next frame in the order of showing, valid until the next call; null at the end, and when
  // the pixels need more bytes than there is room for. Throws Error when the stream is damaged.
  const AVFrame* next();

  // The bytes that a pixel needs, where that is more than the room.
  std::uint32_t missing_pixel_bytes() const { return missing_pixel_bytes_; }

 private:
  struct FreeContext {
    void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
  };

  static int get_buffer(AVCodecContext* context, AVFrame* frame, int flags);

  int receive();
  int feed();

  FfmpegSource& source_;
  FrameRoom room_;
  std::uint32_t missing_pixel_bytes_ = 0;
  Complaint complaint_;
  std::unique_ptr<AVCodecContext, FreeContext> context_;
  FfmpegPacket packet_ = make_packet();
  FfmpegFrame frame_ = make_frame();
};

}  // namespace vitrove
