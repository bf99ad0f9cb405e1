#include "media/ffmpeg_decoder.h"

#include <new>
#include <optional>
#include <string>

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace vitrove {
namespace {

// For MP3, "buffer" would silence every granule that some encoders have padded; and what else there
// is ("bitstream", "careful", ...) refuses no damage that is not refused without it.
int wanted_checks(AVCodecID codec) {
  constexpr int all = AV_EF_EXPLODE | AV_EF_CRCCHECK;
  return codec == AV_CODEC_ID_MP3 ? all : all | AV_EF_BUFFER;
}

}  // namespace

FfmpegDecoder::FfmpegDecoder(FfmpegSource& source, FrameRoom room) : source_(source), room_(room) {
  const AVStream& stream = source.stream();
  const AVCodec* codec = avcodec_find_decoder(stream.codecpar->codec_id);
  if (codec == nullptr) source.throw_failure(AVERROR_DECODER_NOT_FOUND);
  context_.reset(avcodec_alloc_context3(codec));
  if (!context_) throw std::bad_alloc();
  const int copied = avcodec_parameters_to_context(context_.get(), stream.codecpar);
  if (copied < 0) source.throw_failure(copied);
  context_->pkt_timebase = stream.time_base;
  context_->thread_count = 1;
  context_->max_pixels = room.pixels;
  context_->max_samples = most_frame_samples;
  context_->opaque = this;
  context_->get_buffer2 = get_buffer;
  context_->err_recognition = wanted_checks(codec->id);
  context_->flags |= AV_CODEC_FLAG_BITEXACT;
  // Streams that do not say how far frames are out of order: the most there can be, not a guess.
  if (codec->id == AV_CODEC_ID_H264) context_->strict_std_compliance = FF_COMPLIANCE_STRICT;
  context_->codec_whitelist = av_strdup(allowed_decoders());
  if (context_->codec_whitelist == nullptr) throw std::bad_alloc();
  const int status = avcodec_open2(context_.get(), codec, nullptr);
  if (status == AVERROR(ENOMEM)) source.throw_failure(status);
  if (status < 0) {
    throw Error(ErrorCode::unsupported_format,
                std::string(to_string(source.format())) + " with the codec " +
                    avcodec_get_name(stream.codecpar->codec_id) + " is not supported");
  }
}

int FfmpegDecoder::get_buffer(AVCodecContext* context, AVFrame* frame, int flags) {
  auto& decoder = *static_cast<FfmpegDecoder*>(context->opaque);
  const AVPixFmtDescriptor* pixel =
      context->codec_type == AVMEDIA_TYPE_VIDEO
          ? av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame->format))
          : nullptr;
  if (pixel != nullptr) {
    const auto needed = static_cast<std::uint32_t>(av_get_padded_bits_per_pixel(pixel) + 7) / 8;
    if (needed > decoder.room_.pixel_bytes) {
      decoder.missing_pixel_bytes_ = needed;
      return AVERROR(ENOMEM);
    }
  }
  return avcodec_default_get_buffer2(context, frame, flags);
}

int FfmpegDecoder::feed() {
  const bool has_more = source_.read(*packet_);
  return avcodec_send_packet(context_.get(), has_more ? packet_.get() : nullptr);
}

int FfmpegDecoder::receive() {
  // The lines of Motion JPEG are about what cameras write into headers, of no harm to the picture.
  std::optional<ComplaintListener> listener;
  if (context_->codec_id != AV_CODEC_ID_MJPEG) listener.emplace(context_.get(), complaint_);
  for (;;) {
    const int received = avcodec_receive_frame(context_.get(), frame_.get());
    if (received != AVERROR(EAGAIN)) return received;
    const int sent = feed();
    if (sent < 0) return sent;
  }
}

const AVFrame* FfmpegDecoder::next() {
  const int status = receive();
  if (missing_pixel_bytes_ != 0) return nullptr;
  if (complaint_.is_heard()) throw_damaged(source_.format(), complaint_.text());
  if (status == AVERROR_EOF) return nullptr;
  if (status < 0) source_.throw_failure(status);
  const bool is_corrupt =
      frame_->decode_error_flags != 0 || (frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0;
  if (is_corrupt) throw_damaged(source_.format(), "a frame was not decoded as a whole");
  return frame_.get();
}

}  // namespace vitrove
