#include "media/ffmpeg_decoder.h"

#include <new>
#include <string>

namespace vitrove {

FfmpegDecoder::FfmpegDecoder(FfmpegSource& source, std::int64_t max_pixels) : source_(source) {
  const AVStream& stream = source.stream();
  const AVCodec* codec = avcodec_find_decoder(stream.codecpar->codec_id);
  if (codec == nullptr) source.throw_failure(AVERROR_DECODER_NOT_FOUND);
  context_.reset(avcodec_alloc_context3(codec));
  if (!context_) throw std::bad_alloc();
  if (avcodec_parameters_to_context(context_.get(), stream.codecpar) < 0) throw std::bad_alloc();
  context_->pkt_timebase = stream.time_base;
  context_->thread_count = 1;
  context_->max_pixels = max_pixels;
  context_->err_recognition = AV_EF_EXPLODE | AV_EF_CRCCHECK | AV_EF_BUFFER;
  context_->flags |= AV_CODEC_FLAG_BITEXACT;
  // Streams that do not say how far frames are out of order: the most there can be, not a guess.
  if (codec->id == AV_CODEC_ID_H264) context_->strict_std_compliance = FF_COMPLIANCE_STRICT;
  context_->codec_whitelist = av_strdup(allowed_decoders());
  const int status = avcodec_open2(context_.get(), codec, nullptr);
  if (status == AVERROR(ENOMEM)) throw std::bad_alloc();
  if (status < 0) {
    throw Error(ErrorCode::unsupported_format,
                std::string(to_string(source.format())) + " with the codec " +
                    avcodec_get_name(stream.codecpar->codec_id) + " is not supported");
  }
}

void FfmpegDecoder::feed() {
  const bool has_more = source_.read(*packet_);
  const int status = avcodec_send_packet(context_.get(), has_more ? packet_.get() : nullptr);
  if (status < 0) source_.throw_failure(status);
}

const AVFrame* FfmpegDecoder::next() {
  for (;;) {
    const int status = avcodec_receive_frame(context_.get(), frame_.get());
    if (status == AVERROR_EOF) return nullptr;
    if (status == AVERROR(EAGAIN)) {
      feed();
      continue;
    }
    if (status < 0) source_.throw_failure(status);
    const bool is_corrupt =
        frame_->decode_error_flags != 0 || (frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0;
    if (is_corrupt) throw_damaged(source_.format(), "a frame was not decoded as a whole");
    return frame_.get();
  }
}

}  // namespace vitrove
