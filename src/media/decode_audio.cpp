#include <algorithm>
#include <cmath>
#include <new>
#include <optional>
#include <string>

#include "media/container_end.h"
#include "media/decoder_versions.h"
#include "media/downmix.h"
#include "media/ffmpeg_decoder.h"
#include "media/iso_tables.h"
#include "media/mp3_end.h"
#include "media/resampler.h"
#include "vitrove/audio.h"

namespace vitrove {
namespace {

constexpr std::uint32_t audio_version = 3;
constexpr std::uint32_t lowest_rate = 1'000;
constexpr std::uint32_t highest_rate = 384'000;

// Packets may say a little less than they give.
constexpr double margin_seconds = 1.0;

// What a codec and a resampler keep, generously.
constexpr std::uint64_t codec_bytes = std::uint64_t{4} << 20;
// A packet, its samples of one byte as two or four, and as floats before and in the resampler.
constexpr std::uint64_t bytes_per_packet_byte = 16;

class AudioJob {
 public:
  AudioJob(std::span<const std::byte> bytes, MediaFormat format, std::uint32_t rate,
           const AudioLimits& limits, const DecodeContext& context)
      : bytes_(bytes),
        format_(format),
        rate_(rate),
        limits_(limits),
        image_limits_{.max_item_bytes = limits.max_item_bytes},
        job_(image_limits_, context) {}

  DecodedAudio run() {
    job_.check_time();
    look_through();
    most_samples_ = static_cast<std::uint64_t>(std::ceil((seconds_ + margin_seconds) * rate_));
    DecodedAudio decoded;
    decoded.format = format_;
    decoded.clip.rate = rate_;
    const MediaShape shape{.work_pixels = most_samples_,  // a sample is about a pixel's work
                           .samples = most_samples_};
    const FilterShape filters(source_rate_, rate_);
    job_.reserve_for(shape, most_samples_ * sizeof(float),
                     filters.table_bytes() + codec_bytes + bytes_per_packet_byte * largest_packet_);
    Resampler resampler(filters);
    resampler.output().reserve(most_samples_);
    read_samples(resampler);
    decoded.clip.samples = std::move(resampler.output());
    if (decoded.clip.samples.empty()) {
      throw Error(ErrorCode::invalid_argument, "the sound has no samples");
    }
    if (is_untold_) check_end(static_cast<double>(decoded.clip.samples.size()) / rate_, seconds_);
    decoded.lease = job_.take_lease(decoded.clip.samples.capacity() * sizeof(float));
    return decoded;
  }

 private:
  // How long it is, by its packets.
  void look_through() {
    FfmpegSource source(bytes_, format_, AVMEDIA_TYPE_AUDIO, job_);
    const int rate = source.stream().codecpar->sample_rate;
    if (rate < static_cast<int>(lowest_rate) || rate > static_cast<int>(highest_rate)) {
      throw Error(ErrorCode::unsupported_format,
                  "sound of " + std::to_string(rate) + " samples a second is not supported");
    }
    source_rate_ = static_cast<std::uint32_t>(rate);
    channels_ =
        static_cast<std::uint32_t>(std::max(source.stream().codecpar->ch_layout.nb_channels, 1));
    const double declared = source.declared_seconds();
    check_length(declared);
    const FfmpegPacket packet = make_packet();
    while (source.read(*packet)) {
      note(source, *packet);
      check_length(seconds_);
    }
    // Some packets say nothing at all. Then the header counts, and is held to its word at the end.
    is_untold_ = seconds_ == 0;
    if (is_untold_) seconds_ = declared;
    check_end(seconds_, declared);
  }

  // Rounding and priming stay below this.
  void check_end(double seconds, double declared) const {
    if (seconds < declared - std::max(0.2, 0.03 * declared)) {
      throw_damaged(format_, "shorter than its header says");
    }
  }

  // Some packets do not say how long they are, others not when they start, some neither. Then they
  // are as long as the one before, and start at its end.
  void note(const FfmpegSource& source, const AVPacket& packet) {
    largest_packet_ = std::max(largest_packet_, static_cast<std::uint64_t>(packet.size));
    const double duration = source.seconds_of(std::max<std::int64_t>(packet.duration, 0));
    told_seconds_ += duration;
    const double time = packet.pts != AV_NOPTS_VALUE ? source.seconds_of(packet.pts) : end_;
    if (!start_) start_ = last_ = time;
    length_ = duration > 0 ? duration : std::max(time - last_, length_);
    last_ = time;
    end_ = time + length_;
    seconds_ = std::max({seconds_, told_seconds_, end_ - *start_});
  }

  void check_length(double seconds) const {
    check_limit(seconds, limits_.max_seconds, "seconds");
    check_limit(seconds * source_rate_ * channels_, static_cast<double>(limits_.max_samples),
                "samples");
  }

  static void check_limit(double value, double limit, const std::string& unit) {
    constexpr double rounding = 1e-9;  // of many short packets' times
    if (value <= limit * (1 + rounding)) return;
    const auto whole = [](double number) {
      return std::to_string(static_cast<std::uint64_t>(std::ceil(std::min(1e15, number))));
    };
    throw Error(ErrorCode::too_large, "a sound of " + whole(value) + " " + unit +
                                          " exceeds the limit of " + whole(limit) + " " + unit);
  }

  void read_samples(Resampler& resampler) const {
    FfmpegSource source(bytes_, format_, AVMEDIA_TYPE_AUDIO, job_);
    FfmpegDecoder decoder(source, {});
    std::vector<float> mono;
    while (const AVFrame* frame = decoder.next()) {
      if (frame->sample_rate != static_cast<int>(source_rate_)) {
        throw_damaged(format_, "sound of several rates");
      }
      const auto samples = static_cast<std::uint64_t>(frame->nb_samples);
      const auto more = resampled_length(samples, source_rate_, rate_);
      if (resampler.output().size() + more > most_samples_) {
        throw_damaged(format_, "longer than its packets say");
      }
      downmix(*frame, mono);
      resampler.push(mono);
    }
    resampler.finish();
  }

  std::span<const std::byte> bytes_;
  const MediaFormat format_;
  const std::uint32_t rate_;
  const AudioLimits& limits_;
  const ImageLimits image_limits_;
  DecodeJob job_;
  std::uint32_t source_rate_ = 0;
  double seconds_ = 0;
  double told_seconds_ = 0;
  bool is_untold_ = false;
  std::optional<double> start_;  // seconds
  double last_ = 0;              // when the packet before started
  double length_ = 0;            // how long it is
  double end_ = 0;
  std::uint32_t channels_ = 1;
  std::uint64_t largest_packet_ = 0;
  std::uint64_t most_samples_ = 0;
};

void check_audio_format(MediaFormat format) {
  if (is_decodable(format, Modality::audio)) return;
  throw Error(ErrorCode::unsupported_format,
              std::string(to_string(format)) +
                  " is not a supported audio format (supported: wav, flac, mp3, ogg, aac, "
                  "mp4, quicktime, webm)");
}

}  // namespace

DecodedAudio decode_audio(std::span<const std::byte> bytes, std::uint32_t rate,
                          const AudioLimits& limits, const DecodeContext& context) {
  if (rate < lowest_rate || rate > highest_rate) {
    throw Error(ErrorCode::invalid_argument, "the wanted sample rate is out of range");
  }
  check_item_bytes(bytes, limits.max_item_bytes);
  const MediaFormat format = sniff(bytes);
  check_audio_format(format);
  if (format == MediaFormat::mp4 || format == MediaFormat::quicktime) {
    check_iso_tables(bytes, format);
  }
  if (format == MediaFormat::webm) check_matroska_end(bytes);
  if (format == MediaFormat::mp3) bytes = without_mp3_tail(bytes);
  try {
    return AudioJob(bytes, format, rate, limits, context).run();
  } catch (const std::bad_alloc&) {
    throw_out_of_memory();
  }
}

std::vector<PipelineVersion> audio_decoder_versions() {
  return {{"audio", audio_version},
          ffmpeg_version("libavformat", avformat_version()),
          ffmpeg_version("libavcodec", avcodec_version())};
}

}  // namespace vitrove
