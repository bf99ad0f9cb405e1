#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <optional>
#include <string>

#include "media/container_end.h"
#include "media/decoder_versions.h"
#include "media/ffmpeg_decoder.h"
#include "media/frame_sampling.h"
#include "media/iso_tables.h"
#include "media/orientation.h"
#include "media/rgb_converter.h"
#include "vitrove/side_data.h"
#include "vitrove/video.h"

extern "C" {
#include <libswscale/swscale.h>
}

namespace vitrove {
namespace {

constexpr std::uint32_t video_version = 2;

// A damaged clip may name any time for a frame, one before its start among them. Side data hold
// seconds of a medium alone (side_data.h).
double within_clip(double seconds) { return std::clamp(seconds, 0.0, max_side_seconds); }

// Pictures that a decoder keeps to predict others from, and those that wait to be shown.
constexpr std::uint64_t most_kept_frames = 20;
// Where each picture stands alone: the one before, the new one, and the same as RGB with alpha.
constexpr std::uint64_t fewest_kept_frames = 4;

// What a decoder makes of a pixel, as far as can be known before: to guess too little costs a
// round.
std::uint32_t usual_pixel_bytes(AVCodecID codec) {
  // RGB with alpha, and 4:2:2 of 10 bits.
  if (codec == AV_CODEC_ID_GIF || codec == AV_CODEC_ID_PRORES) return 4;
  return 3;  // three planes of 8 bits, or 4:2:0 of up to 16
}

// Sides are coded in whole blocks, of which what is too much is cut off; and the rows that a
// decoder works on count as a picture of 280 rows.
constexpr std::int64_t side_margin = 512;

std::int64_t coded_pixels(const AVCodecParameters& frame) {
  return (frame.width + side_margin) * (frame.height + side_margin);
}

std::uint64_t kept_frames(const AVCodecParameters& frame) {
  const AVCodecDescriptor* codec = avcodec_descriptor_get(frame.codec_id);
  const bool stands_alone = codec != nullptr && (codec->props & AV_CODEC_PROP_INTRA_ONLY) != 0;
  return stands_alone ? fewest_kept_frames : most_kept_frames;
}

// How the frames have to be turned, by the signs of the matrix that maps them to the screen.
Orientation orientation_of(const AVStream& stream) {
  std::size_t size = 0;
  const std::uint8_t* data = av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
  if (data == nullptr || size < 9 * sizeof(std::int32_t)) return Orientation::upright;
  const auto sign = [data](std::size_t at) {
    std::int32_t value = 0;
    std::memcpy(&value, data + at * sizeof value, sizeof value);
    return (value > 0) - (value < 0);
  };
  struct Turn {
    int signs[4];
    Orientation orientation;
  };
  constexpr Turn turns[] = {
      {{-1, 0, 0, 1}, Orientation::flip_horizontal},     {{-1, 0, 0, -1}, Orientation::rotate_180},
      {{1, 0, 0, -1}, Orientation::flip_vertical},       {{0, 1, 1, 0}, Orientation::transpose},
      {{0, 1, -1, 0}, Orientation::rotate_clockwise},    {{0, -1, -1, 0}, Orientation::transverse},
      {{0, -1, 1, 0}, Orientation::rotate_anticlockwise}};
  for (const Turn& turn : turns) {
    const bool is_it = sign(0) == turn.signs[0] && sign(1) == turn.signs[1] &&
                       sign(3) == turn.signs[2] && sign(4) == turn.signs[3];
    if (is_it) return turn.orientation;
  }
  return Orientation::upright;
}

std::string with_unit(double value, const char* unit) {
  const auto rounded = static_cast<std::uint64_t>(std::ceil(std::min(1e15, value)));
  return std::to_string(rounded) + " " + unit;
}

class VideoJob {
 public:
  VideoJob(std::span<const std::byte> bytes, MediaFormat format, const VideoSampling& sampling,
           const VideoLimits& limits, FrameSink& sink, const DecodeContext& context)
      : bytes_(bytes),
        format_(format),
        sampling_(sampling),
        limits_(limits),
        sink_(sink),
        context_(context),
        image_limits_{.max_item_bytes = limits.max_item_bytes,
                      .max_pixels = limits.max_frame_pixels} {}

  StreamedVideo run() {
    DecodeJob job(image_limits_, context_);
    job.check_time();
    FrameSurvey survey = look_through(job);
    // Some packets make no frame to be shown, some two, and headers do not tell the kind of pixels.
    // What a round has found out holds in the next.
    for (int round = 0; round < 3; ++round) {
      if (auto decoded = try_decode(survey)) return std::move(*decoded);
    }
    throw_damaged(format_, "another number of frames each time");
  }

 private:
  FrameSurvey look_through(const DecodeJob& job) {
    if (format_ == MediaFormat::gif) check_gif_end(bytes_, job);
    FfmpegSource source(bytes_, format_, AVMEDIA_TYPE_VIDEO, job);
    check_frame_size(source, job);
    pixel_bytes_ = usual_pixel_bytes(source.stream().codecpar->codec_id);
    const double declared = source.declared_seconds();
    check_seconds(declared);
    FrameSurvey survey = survey_frames(source, limits_.max_source_frames);
    if (survey.frames == 0) throw_damaged(format_, "no frames");
    check_seconds(survey.seconds);
    // What is cut between two packets has no other mark. Rounding and priming stay below this.
    if (survey.seconds < declared - std::max(0.2, 0.03 * declared)) {
      throw_damaged(format_, "shorter than its header says");
    }
    return survey;
  }

  void check_frame_size(const FfmpegSource& source, const DecodeJob& job) const {
    const AVCodecParameters& frame = *source.stream().codecpar;
    if (frame.width <= 0 || frame.height <= 0) throw_damaged(format_, "no frame size");
    job.check_size(static_cast<std::uint64_t>(frame.width),
                   static_cast<std::uint64_t>(frame.height), "a video frame");
  }

  void check_seconds(double seconds) const {
    if (seconds <= limits_.max_seconds) return;
    throw Error(ErrorCode::too_large, "a video of " + with_unit(seconds, "seconds") +
                                          " exceeds the limit of " +
                                          with_unit(limits_.max_seconds, "seconds"));
  }

  std::vector<std::uint64_t> choose(const FrameSurvey& survey) const {
    auto places = sample_frames(survey.frames, survey.rate, sampling_);
    if (places.size() <= limits_.max_frames) return places;
    throw Error(ErrorCode::too_large, "a video of which " + std::to_string(places.size()) +
                                          " frames are wanted exceeds the limit of " +
                                          std::to_string(limits_.max_frames) + " video frames");
  }

  // Nothing when the file turns out to have another number of frames, or larger pixels.
  std::optional<StreamedVideo> try_decode(FrameSurvey& survey) {
    const auto places = choose(survey);
    DecodeJob job(image_limits_, context_);
    FfmpegSource source(bytes_, format_, AVMEDIA_TYPE_VIDEO, job);
    check_frame_size(source, job);
    const Orientation orientation = orientation_of(source.stream());
    const std::uint64_t packet_bytes = 2 * survey.largest_packet;  // and a decoder's copy
    sink_.begin(reserve(job, source, orientation, places, packet_bytes));

    FfmpegDecoder decoder(source, {coded_pixels(*source.stream().codecpar), pixel_bytes_});
    StreamedVideo decoded;
    decoded.format = format_;
    decoded.times.timestamps = read_frames(decoder, source, places, orientation);
    if (decoder.missing_pixel_bytes() != 0) {
      pixel_bytes_ = decoder.missing_pixel_bytes();
      return std::nullopt;
    }
    if (frames_seen_ == 0) throw_damaged(format_, "no frames");
    if (frames_seen_ < survey.frames && !survey.begins_with_key_frame) {
      throw_damaged(format_, "frames before the first key frame");
    }
    if (frames_seen_ != survey.frames) {
      survey.rate *= static_cast<double>(frames_seen_) / static_cast<double>(survey.frames);
      survey.frames = frames_seen_;
      return std::nullopt;
    }
    decoded.times.seconds = survey.seconds;
    decoded.times.sample_fps =
        static_cast<double>(places.size()) / static_cast<double>(survey.frames) * survey.rate;
    decoded.lease = job.take_lease(0);
    return decoded;
  }

  // What the sink is told. While the decoder works, one frame is there at a time; two while it is
  // turned.
  MediaShape reserve(DecodeJob& job, const FfmpegSource& source, Orientation orientation,
                     std::span<const std::uint64_t> places, std::uint64_t packet_bytes) const {
    const auto width = static_cast<std::uint32_t>(source.stream().codecpar->width);
    const auto height = static_cast<std::uint32_t>(source.stream().codecpar->height);
    const std::uint64_t pixels = std::uint64_t{width} * height;
    const bool is_turned = swaps_sides(orientation);
    const MediaShape shape{.width = is_turned ? height : width,
                           .height = is_turned ? width : height,
                           .frames = places.size(),
                           .work_pixels = pixels * (places.back() + 1)};
    const std::uint64_t frame_bytes = 3 * pixels * (needs_second_buffer(orientation) ? 2 : 1);
    const std::uint64_t decoder_bytes =
        pixels * kept_frames(*source.stream().codecpar) * pixel_bytes_ + packet_bytes;
    job.reserve_for(shape, frame_bytes + decoder_bytes, 0,
                    " (a smaller fps, num_frames or max_pixels takes less)");
    return shape;
  }

  // Their times.
  std::vector<double> read_frames(FfmpegDecoder& decoder, const FfmpegSource& source,
                                  std::span<const std::uint64_t> places, Orientation orientation) {
    std::vector<double> times;
    std::optional<RgbConverter> converter;
    std::optional<double> start;  // in ticks; as doubles no difference is too large
    frames_seen_ = 0;
    while (const AVFrame* frame = decoder.next()) {
      check_frame(*frame, source, converter);
      const bool is_timed = frame->best_effort_timestamp != AV_NOPTS_VALUE;
      const auto time = static_cast<double>(frame->best_effort_timestamp);
      if (!start && is_timed) start = time;
      // A place may stand there twice when there are few frames.
      while (times.size() < places.size() && places[times.size()] == frames_seen_) {
        sink_.take(make_upright(converter->convert(*frame), orientation));
        times.push_back(is_timed ? within_clip(source.seconds_of(time - *start)) : 0.0);
      }
      ++frames_seen_;
    }
    return times;
  }

  void check_frame(const AVFrame& frame, const FfmpegSource& source,
                   std::optional<RgbConverter>& converter) const {
    const AVCodecParameters& expected = *source.stream().codecpar;
    if (frame.width != expected.width || frame.height != expected.height) {
      throw_damaged(format_, "frames of several sizes");
    }
    if (!converter) converter.emplace(frame);
    if (!converter->takes(frame)) throw_damaged(format_, "frames of several kinds of pixels");
  }

  std::span<const std::byte> bytes_;
  const MediaFormat format_;
  const VideoSampling& sampling_;
  const VideoLimits& limits_;
  FrameSink& sink_;
  const DecodeContext& context_;
  const ImageLimits image_limits_;
  std::uint64_t frames_seen_ = 0;
  std::uint32_t pixel_bytes_ = 0;
};

struct FrameKeeper final : FrameSink {
  void begin(const MediaShape&) override { frames.clear(); }
  void take(RgbImage frame) override { frames.push_back(std::move(frame)); }

  std::vector<RgbImage> frames;
};

void check_video_format(MediaFormat format) {
  if (is_decodable(format, Modality::video)) return;
  throw Error(ErrorCode::unsupported_format,
              std::string(to_string(format)) +
                  " is not a supported video format (supported: mp4, quicktime, webm, avi, gif)");
}

}  // namespace

StreamedVideo decode_video(std::span<const std::byte> bytes, const VideoSampling& sampling,
                           const VideoLimits& limits, FrameSink& sink,
                           const DecodeContext& context) {
  check_item_bytes(bytes, limits.max_item_bytes);
  const MediaFormat format = sniff(bytes);
  check_video_format(format);
  if (format == MediaFormat::mp4 || format == MediaFormat::quicktime) {
    check_iso_tables(bytes, format);
  }
  if (format == MediaFormat::webm) check_matroska_end(bytes);
  try {
    return VideoJob(bytes, format, sampling, limits, sink, context).run();
  } catch (const std::bad_alloc&) {
    throw_out_of_memory();
  }
}

DecodedVideo decode_video(std::span<const std::byte> bytes, const VideoSampling& sampling,
                          const VideoLimits& limits, const DecodeContext& context) {
  DecodeContext keeping = context;
  keeping.bytes_beside = [&context](const MediaShape& shape) {
    const std::uint64_t caller = context.bytes_beside ? context.bytes_beside(shape) : 0;
    return caller + 3 * std::uint64_t{shape.width} * shape.height * shape.frames;
  };
  FrameKeeper keeper;
  StreamedVideo streamed = decode_video(bytes, sampling, limits, keeper, keeping);
  DecodedVideo decoded;
  static_cast<ClipTimes&>(decoded.clip) = std::move(streamed.times);
  decoded.clip.frames = std::move(keeper.frames);
  decoded.format = streamed.format;
  decoded.lease = std::move(streamed.lease);
  return decoded;
}

std::vector<PipelineVersion> video_decoder_versions() {
  return {{"video", video_version},
          ffmpeg_version("libavformat", avformat_version()),
          ffmpeg_version("libavcodec", avcodec_version()),
          ffmpeg_version("libswscale", swscale_version())};
}

}  // namespace vitrove
