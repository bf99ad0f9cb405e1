// A clip or a sound in memory, opened with FFmpeg's demuxers: the packets of one stream.
//
// The container is told by our own sniffing and never guessed; everything is read through callbacks
// on the bytes, and any other address or file that the container names stays closed. Decoders are
// those of a list; the others might as well not exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "media/decode_job.h"
#include "media/ffmpeg_log.h"
#include "media/wav_size.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

namespace vitrove {

// Of one packet's sound, in each channel: more than any encoder makes.
constexpr int most_frame_samples = 1 << 20;

struct FreePacket {
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
};
using FfmpegPacket = std::unique_ptr<AVPacket, FreePacket>;
FfmpegPacket make_packet();

struct FreeFrame {
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
};
using FfmpegFrame = std::unique_ptr<AVFrame, FreeFrame>;
FfmpegFrame make_frame();

class FfmpegSource {
 public:
  // Throws Error: damaged, no stream of this kind, or time is up.
  FfmpegSource(std::span<const std::byte> bytes, MediaFormat format, AVMediaType kind,
               const DecodeJob& job);
  FfmpegSource(const FfmpegSource&) = delete;
  FfmpegSource& operator=(const FfmpegSource&) = delete;

  const AVStream& stream() const { return *stream_; }
  MediaFormat format() const { return format_; }
  double seconds_of(double ticks) const { return ticks * av_q2d(stream_->time_base); }
  double seconds_of(std::int64_t ticks) const { return seconds_of(static_cast<double>(ticks)); }
  // By the word of the container; 0 when it does not say.
  double declared_seconds() const;

  // Frames a second by the word of the container; 0 when it does not say.
  double declared_rate() const;

  // The stream's next packet; false at the end. Throws Error when the file is damaged or cut.
  bool read(AVPacket& packet);

  // Throws for an FFmpeg error code: out of memory, time is up, or damaged.
  [[noreturn]] void throw_failure(int status) const;

 private:
  struct FreeIo {
    void operator()(AVIOContext* io) const;
  };
  struct CloseInput {
    void operator()(AVFormatContext* context) const { avformat_close_input(&context); }
  };

  void open();
  void probe(std::uint64_t most_pixels);
  void choose_stream(AVMediaType kind);
  int read_frame(AVPacket& packet);

  static int read_bytes(void* self, std::uint8_t* to, int size);
  static std::int64_t seek(void* self, std::int64_t offset, int whence);
  static int must_stop(void* self);

  std::span<const std::byte> bytes_;
  const MediaFormat format_;
  const DecodeJob& job_;
  const std::optional<WavSize> wav_size_;
  std::size_t at_ = 0;
  Complaint complaint_;
  std::unique_ptr<AVIOContext, FreeIo> io_;
  std::unique_ptr<AVFormatContext, CloseInput> context_;
  AVStream* stream_ = nullptr;
};

// Decoders that may be used, comma-separated, as FFmpeg takes it.
const char* allowed_decoders();

}  // namespace vitrove
