#include <utility>

#include <nlohmann/json.hpp>

#include "preprocess/json_text.h"
#include "preprocess/video_params.h"
#include "vitrove/error.h"
#include "vitrove/preprocess.h"

namespace vitrove {
namespace {

constexpr std::uint32_t sample_rate = 16'000;

class RawClipRun final : public ClipRun {
 public:
  void begin(const MediaShape& shape) override {
    shape_ = shape;
    pixels_.clear();
    pixels_.reserve(std::size_t{3} * shape.width * shape.height * shape.frames);
  }

  void take(RgbImage frame) override {
    pixels_.insert(pixels_.end(), frame.pixels.begin(), frame.pixels.end());
  }

  PreprocessedItem finish(const ClipTimes& times) override {
    PreprocessedItem item;
    item.modality = Modality::video;
    item.tensors.push_back({"pixels",
                            {static_cast<std::int64_t>(shape_.frames), std::int64_t{shape_.height},
                             std::int64_t{shape_.width}, 3},
                            std::move(pixels_)});
    item.side.timestamps = times.timestamps;
    if (times.sample_fps > 0) item.side.seconds_per_grid = 1 / times.sample_fps;
    return item;
  }

 private:
  MediaShape shape_;
  std::vector<std::uint8_t> pixels_;
};

class RawPreprocessor final : public Preprocessor {
 public:
  explicit RawPreprocessor(std::string_view video_defaults) {
    defaults_ = sampling_of(video_defaults);
  }

  std::string_view family() const override { return "raw"; }

  ResolvedParams resolve(Modality modality, std::string_view kwargs) const override {
    ResolvedParams resolved;
    if (modality == Modality::video) {
      add_to_resolved(sampling_of(kwargs), resolved);
    } else {
      refuse_others(parse_object(kwargs, "mm_processor_kwargs"));
    }
    return resolved;
  }

  std::uint64_t bytes_beside(std::uint32_t width, std::uint32_t height,
                             const ResolvedParams&) const override {
    return std::uint64_t{3} * width * height;
  }

  PreprocessedItem run(const RgbImage& image, const ResolvedParams&) const override {
    PreprocessedItem item;
    item.tensors.push_back(
        {"pixels", {std::int64_t{image.height}, std::int64_t{image.width}, 3}, image.pixels});
    return item;
  }

  VideoSampling video_sampling(const ResolvedParams& params) const override {
    return sampling_from_resolved(params);
  }

  std::uint64_t video_bytes_beside(const MediaShape& shape, const ResolvedParams&) const override {
    return std::uint64_t{3} * shape.width * shape.height * shape.frames;
  }

  std::unique_ptr<ClipRun> start_video(const ResolvedParams&) const override {
    return std::make_unique<RawClipRun>();
  }

  std::uint32_t audio_rate(const ResolvedParams&) const override { return sample_rate; }

  std::uint64_t audio_bytes_beside(std::uint64_t samples, const ResolvedParams&) const override {
    return samples * sizeof(float);
  }

  PreprocessedItem run_audio(const AudioClip& clip, const ResolvedParams&) const override {
    PreprocessedItem item;
    item.modality = Modality::audio;
    const auto count = static_cast<std::int64_t>(clip.samples.size());
    item.tensors.push_back({"samples", {count}, clip.samples});
    const double seconds = static_cast<double>(count) / sample_rate;
    item.side.sound = SoundLength{seconds, seconds};
    return item;
  }

  std::vector<PipelineVersion> versions() const override { return {{"raw", 2}}; }

 private:
  VideoSampling sampling_of(std::string_view kwargs) const {
    VideoSampling sampling = defaults_;
    nlohmann::json object = parse_object(kwargs, "mm_processor_kwargs");
    take_video_sampling(object, sampling);
    refuse_others(object);
    return sampling;
  }

  static void refuse_others(const nlohmann::json& object) {
    if (object.empty()) return;
    throw Error(ErrorCode::invalid_argument, "this encoder takes no preprocessing parameter '" +
                                                 object.begin().key().substr(0, 80) +
                                                 "' (mm_processor_kwargs)");
  }

  VideoSampling defaults_;
};

}  // namespace

std::unique_ptr<Preprocessor> make_raw_preprocessor(std::string_view video_defaults) {
  return std::make_unique<RawPreprocessor>(video_defaults);
}

}  // namespace vitrove
