#include "media/ffmpeg_source.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "media/container_end.h"

namespace vitrove {
namespace {

constexpr int io_buffer_bytes = 32 * 1024;
constexpr int most_streams = 64;
constexpr std::uint64_t most_cover_pixels = 1 << 20;
// What a decoder takes to say of which size its frames are: tables over their blocks. Measured for
// MPEG-4: 0.9 bytes a pixel; a cover may be decoded, as RGB with alpha.
constexpr std::uint64_t probed_bytes_a_pixel = 4;

const char* demuxer_name(MediaFormat format) {
  switch (format) {
    case MediaFormat::mp4:
    case MediaFormat::quicktime:
      return "mov";
    case MediaFormat::webm:
      return "matroska";
    case MediaFormat::avi:
      return "avi";
    case MediaFormat::gif:
      return "gif";
    case MediaFormat::wav:
      return "wav";
    case MediaFormat::mp3:
      return "mp3";
    case MediaFormat::flac:
      return "flac";
    case MediaFormat::aac:
      return "aac";
    default:
      return "ogg";
  }
}

// More than any table or frame within our limits takes. What asks for more is damaged or means
// harm, and asks before anything of it can be counted.
constexpr std::size_t largest_allocation = std::size_t{256} << 20;

void set_up_once() {
  take_over_ffmpeg_log();
  static std::once_flag once;
  std::call_once(once, [] { av_max_alloc(largest_allocation); });
}

// What a container refers to outside itself stays there.
int refuse_to_open(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
  return AVERROR(EACCES);
}

// An option that is not set, such as a list of what is allowed, would be one that allows all.
void set_option(AVDictionary*& entries, const char* name, const char* value) {
  if (av_dict_set(&entries, name, value, 0) < 0) throw std::bad_alloc();
}

struct Options {
  Options() = default;
  ~Options() { av_dict_free(&entries); }
  void set(const char* name, const char* value) { set_option(entries, name, value); }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  AVDictionary* entries = nullptr;
};

// FFmpeg calls it a lack of memory, too, when a file asks for more than there could be. That is
// damage, and trying again later would not help.
bool is_memory_short() {
  constexpr std::size_t enough = std::size_t{64} << 20;
  void* const memory = av_malloc(enough);
  av_free(memory);
  return memory == nullptr;
}

// The demuxer of MP4 leaves the size of these two to what is coded.
bool lacks_size(const AVCodecParameters& stream) {
  const bool is_one = stream.codec_id == AV_CODEC_ID_MPEG4 || stream.codec_id == AV_CODEC_ID_H263;
  return is_one && stream.width == 0;
}

std::string_view name_of(AVMediaType kind) {
  return kind == AVMEDIA_TYPE_VIDEO ? "video" : "sound";
}

}  // namespace

const char* allowed_decoders() {
  return "h264,hevc,libdav1d,libaom-av1,av1,vp8,vp9,mpeg4,mpeg1video,mpeg2video,h263,"
         "mjpeg,prores,png,gif,rawvideo,"
         "pcm_u8,pcm_s8,pcm_s16le,pcm_s16be,pcm_s24le,pcm_s24be,pcm_s32le,pcm_s32be,pcm_f32le,"
         "pcm_f32be,pcm_f64le,pcm_f64be,pcm_alaw,pcm_mulaw,"
         "flac,alac,mp3float,mp3,aac,vorbis,opus,libopus";
}

FfmpegPacket make_packet() {
  FfmpegPacket packet(av_packet_alloc());
  if (!packet) throw std::bad_alloc();
  return packet;
}

FfmpegFrame make_frame() {
  FfmpegFrame frame(av_frame_alloc());
  if (!frame) throw std::bad_alloc();
  return frame;
}

void FfmpegSource::FreeIo::operator()(AVIOContext* io) const {
  av_freep(&io->buffer);
  avio_context_free(&io);
}

FfmpegSource::FfmpegSource(std::span<const std::byte> bytes, MediaFormat format, AVMediaType kind,
                           const DecodeJob& job)
    : bytes_(bytes), format_(format), job_(job), wav_size_(find_wav_size(bytes, format)) {
  set_up_once();
  auto* buffer = static_cast<unsigned char*>(av_malloc(io_buffer_bytes));
  if (buffer == nullptr) throw std::bad_alloc();
  io_.reset(avio_alloc_context(buffer, io_buffer_bytes, 0, this, read_bytes, nullptr, seek));
  if (!io_) {
    av_free(buffer);
    throw std::bad_alloc();
  }
  open();
  if (kind == AVMEDIA_TYPE_AUDIO) probe(most_cover_pixels);
  choose_stream(kind);
  if (lacks_size(*stream_->codecpar)) probe(job.limits().max_pixels);
}

void FfmpegSource::open() {
  Options options;
  options.set("codec_whitelist", allowed_decoders());
  options.set("protocol_whitelist", "");
  AVFormatContext* context = avformat_alloc_context();
  if (context == nullptr) throw std::bad_alloc();
  context->pb = io_.get();
  context->flags |= AVFMT_FLAG_CUSTOM_IO;
  context->io_open = refuse_to_open;
  context->max_streams = most_streams;
  context->error_recognition = AV_EF_EXPLODE;
  context->interrupt_callback = {must_stop, this};
  const AVInputFormat* demuxer = av_find_input_format(demuxer_name(format_));
  if (demuxer == nullptr) {
    avformat_free_context(context);
    throw Error(
        ErrorCode::unsupported_format,
        std::string(to_string(format_)) + " cannot be decoded by the FFmpeg of this server");
  }
  // Frees the context when it fails.
  const int status = avformat_open_input(&context, "", demuxer, &options.entries);
  if (status < 0) throw_failure(status);
  context_.reset(context);
}

// Some headers do not tell the rate of a sound, and then its first packets must. It is not done for
// clips whose headers tell enough.
void FfmpegSource::probe(std::uint64_t most_pixels) {
  const MemoryLease lease = job_.lease_beforehand(probed_bytes_a_pixel * most_pixels);
  std::vector<Options> options(context_->nb_streams);
  std::vector<AVDictionary*> entries;
  for (Options& one : options) {
    one.set("threads", "1");
    one.set("max_pixels", std::to_string(most_pixels).c_str());
    one.set("max_samples", std::to_string(most_frame_samples).c_str());
    entries.push_back(one.entries);
  }
  const int found = avformat_find_stream_info(context_.get(), entries.data());
  for (std::size_t i = 0; i < options.size(); ++i) options[i].entries = entries[i];
  if (found < 0) throw_failure(found);
}

void FfmpegSource::choose_stream(AVMediaType kind) {
  const int index = av_find_best_stream(context_.get(), kind, -1, -1, nullptr, 0);
  if (index >= 0) stream_ = context_->streams[index];
  const bool is_iso = format_ == MediaFormat::mp4 || format_ == MediaFormat::quicktime;
  if (stream_ == nullptr && is_iso && is_iso_cut(bytes_)) {
    throw_damaged(format_, "cut, and holds no " + std::string(name_of(kind)) + " before that");
  }
  // The picture on the cover of a song is no clip.
  if (stream_ == nullptr || (stream_->disposition & AV_DISPOSITION_ATTACHED_PIC) != 0) {
    // Of what is whole it is no fault: it is of another kind, as a sound is for a model of
    // pictures.
    const ErrorCode code =
        context_->nb_streams == 0 ? ErrorCode::invalid_argument : ErrorCode::unsupported_format;
    throw Error(code, "the " + std::string(to_string(format_)) + " file holds no " +
                          std::string(name_of(kind)));
  }
  for (unsigned i = 0; i < context_->nb_streams; ++i) {
    AVStream* other = context_->streams[i];
    if (other != stream_) other->discard = AVDISCARD_ALL;
  }
}

double FfmpegSource::declared_seconds() const {
  if (stream_->duration != AV_NOPTS_VALUE && stream_->duration > 0 &&
      context_->duration_estimation_method != AVFMT_DURATION_FROM_BITRATE) {
    return seconds_of(stream_->duration);
  }
  return 0;
}

double FfmpegSource::declared_rate() const {
  const AVRational rate = stream_->avg_frame_rate;
  return rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 0;
}

bool FfmpegSource::read(AVPacket& packet) {
  for (;;) {
    job_.check_time();
    av_packet_unref(&packet);
    const int status = read_frame(packet);
    if (status == AVERROR_EOF) return false;
    if (status < 0) throw_failure(status);
    if (packet.stream_index != stream_->index) continue;
    if ((packet.flags & AV_PKT_FLAG_CORRUPT) != 0) throw_damaged(format_, "a packet is cut");
    return true;
  }
}

// After damage these go on with what they can make sense of next, and only log it: the demuxers of
// Matroska and Ogg, and what takes AV1 and Opus apart. (What is between the boxes of an MP4, and
// the chunks of an AVI, does not concern the streams.)
int FfmpegSource::read_frame(AVPacket& packet) {
  const AVCodecID codec = stream_->codecpar->codec_id;
  const bool is_taken_apart = codec == AV_CODEC_ID_AV1 || codec == AV_CODEC_ID_OPUS;
  const bool has_such_demuxer = format_ == MediaFormat::webm || format_ == MediaFormat::ogg;
  if (!is_taken_apart && !has_such_demuxer) return av_read_frame(context_.get(), &packet);
  const ComplaintListener listener(is_taken_apart ? nullptr : context_.get(), complaint_);
  const int status = av_read_frame(context_.get(), &packet);
  if (complaint_.is_heard()) throw_damaged(format_, complaint_.text());
  return status;
}

void FfmpegSource::throw_failure(int status) const {
  job_.check_time();
  if (status == AVERROR(ENOMEM) && is_memory_short()) throw std::bad_alloc();
  if (status == AVERROR_PATCHWELCOME || status == AVERROR_DECODER_NOT_FOUND) {
    throw Error(ErrorCode::unsupported_format,
                "this kind of " + std::string(to_string(format_)) + " is not supported");
  }
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(status, text, sizeof text);
  throw_damaged(format_, text);
}

int FfmpegSource::read_bytes(void* self, std::uint8_t* to, int size) {
  auto& source = *static_cast<FfmpegSource*>(self);
  if (source.job_.must_stop()) return AVERROR_EXIT;
  const auto rest = source.bytes_.subspan(source.at_);
  if (rest.empty()) return AVERROR_EOF;
  const std::size_t count = std::min(static_cast<std::size_t>(size), rest.size());
  std::memcpy(to, rest.data(), count);
  if (source.wav_size_)
    source.wav_size_->put(source.at_, {reinterpret_cast<std::byte*>(to), count});
  source.at_ += count;
  return static_cast<int>(count);
}

std::int64_t FfmpegSource::seek(void* self, std::int64_t offset, int whence) {
  auto& source = *static_cast<FfmpegSource*>(self);
  const auto size = static_cast<std::int64_t>(source.bytes_.size());
  whence &= ~AVSEEK_FORCE;
  if (whence == AVSEEK_SIZE) return size;
  if (whence == SEEK_CUR) offset += static_cast<std::int64_t>(source.at_);
  if (whence == SEEK_END) offset += size;
  if (offset < 0 || offset > size) return AVERROR(EINVAL);
  source.at_ = static_cast<std::size_t>(offset);
  return offset;
}

int FfmpegSource::must_stop(void* self) {
  return static_cast<FfmpegSource*>(self)->job_.must_stop() ? 1 : 0;
}

}  // namespace vitrove
