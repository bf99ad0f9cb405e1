#include "vitrove/preprocess.h"

#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "preprocess/image_processor.h"
#include "preprocess/json_text.h"
#include "preprocess/patch_families.h"
#include "preprocess/patch_processor.h"
#include "preprocess/sound_processor.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr std::uintmax_t max_config_bytes = 1 << 20;

std::string text_of(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

ProcessorNames names_in(const nlohmann::json& config, const nlohmann::json& video_config) {
  ProcessorNames names;
  names.image = text_of(config, "image_processor_type");
  if (names.image.empty()) names.image = text_of(config, "feature_extractor_type");
  names.video = text_of(video_config, "video_processor_type");
  if (names.video.empty()) names.video = text_of(config, "video_processor_type");
  names.processor = text_of(config, "processor_class");
  return names;
}

[[noreturn]] void refuse_processor(const std::string& type) {
  const std::string what = type.empty()
                               ? "the preprocessor configuration names no image_processor_type"
                               : "unknown image processor '" + type.substr(0, 80) + "'";
  refuse_params(what + " (known: " + known_image_processors() + ", " +
                std::string(known_patch_processors()) + ", WhisperFeatureExtractor)");
}

// --mm-process-config by modality.
class Overrides {
 public:
  explicit Overrides(std::string_view text)
      : all_(parse_object(text, "the preprocessing configuration")) {
    for (const auto& [name, value] : all_.items()) {
      if (!parse_modality(name) || !value.is_object()) {
        refuse_params("the preprocessing configuration maps image, video and audio to objects");
      }
    }
  }

  nlohmann::json of(Modality modality) const {
    return all_.value(std::string(to_string(modality)), nlohmann::json::object());
  }

 private:
  nlohmann::json all_;
};

std::unique_ptr<Preprocessor> make_image_processor(const ImageFamily& family,
                                                   const nlohmann::json& config,
                                                   const Overrides& overrides,
                                                   const PreprocessLimits& limits) {
  ImageParams params = family.defaults;
  apply_json(config, ParamSource::file, family, params);
  apply_json(overrides.of(Modality::image), ParamSource::request, family, params);
  check_params(params);
  return std::make_unique<ImageProcessor>(family, params, limits);
}

std::unique_ptr<Preprocessor> make_patch_processor(PatchFamily family, const nlohmann::json& config,
                                                   const nlohmann::json& video_config,
                                                   const Overrides& overrides,
                                                   const PreprocessLimits& limits) {
  const auto fill = [&](PatchParams& params, const nlohmann::json& file, Modality modality) {
    apply_json(file, ParamSource::file, modality, family.name, params);
    apply_json(overrides.of(modality), ParamSource::request, modality, family.name, params);
    check_params(params);
  };
  fill(family.image, config, Modality::image);
  fill(family.video, video_config.empty() ? config : video_config, Modality::video);
  return std::make_unique<PatchProcessor>(family, limits);
}

std::unique_ptr<Preprocessor> make_sound_processor(SoundFamily family, const nlohmann::json& config,
                                                   const Overrides& overrides,
                                                   const PreprocessLimits& limits) {
  apply_json(config, ParamSource::file, family);
  apply_json(overrides.of(Modality::audio), ParamSource::request, family);
  return std::make_unique<SoundProcessor>(family, limits);
}

std::string read_config(const std::filesystem::path& file) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  std::ifstream in(file, std::ios::binary);
  if (error || !in) {
    throw Error(ErrorCode::not_found, "the preprocessor configuration cannot be read",
                file.string());
  }
  if (size > max_config_bytes) refuse_params("the preprocessor configuration is too long");
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

void throw_no_such_modality(std::string_view family, Modality modality) {
  throw Error(ErrorCode::unsupported_format, "preprocessing of the family " + std::string(family) +
                                                 " does not take " +
                                                 std::string(to_string(modality)));
}

VideoSampling Preprocessor::video_sampling(const ResolvedParams&) const {
  throw_no_such_modality(family(), Modality::video);
}

std::uint32_t Preprocessor::jpeg_reduction(std::uint32_t, std::uint32_t,
                                           const ResolvedParams&) const {
  return 1;
}

std::uint64_t Preprocessor::video_bytes_beside(const MediaShape&, const ResolvedParams&) const {
  throw_no_such_modality(family(), Modality::video);
}

std::unique_ptr<ClipRun> Preprocessor::start_video(const ResolvedParams&) const {
  throw_no_such_modality(family(), Modality::video);
}

PreprocessedItem Preprocessor::run_video(const VideoClip& clip,
                                         const ResolvedParams& params) const {
  const auto run = start_video(params);
  if (clip.frames.empty()) throw Error(ErrorCode::invalid_argument, "the clip has no frames");
  const RgbImage& first = clip.frames.front();
  run->begin({.width = first.width, .height = first.height, .frames = clip.frames.size()});
  for (const RgbImage& frame : clip.frames) run->take(frame);
  return run->finish(clip);
}

std::uint32_t Preprocessor::audio_rate(const ResolvedParams&) const {
  throw_no_such_modality(family(), Modality::audio);
}

std::uint64_t Preprocessor::audio_bytes_beside(std::uint64_t, const ResolvedParams&) const {
  throw_no_such_modality(family(), Modality::audio);
}

PreprocessedItem Preprocessor::run_audio(const AudioClip&, const ResolvedParams&) const {
  throw_no_such_modality(family(), Modality::audio);
}

std::string_view Tensor::dtype() const {
  constexpr std::array<std::string_view, 3> names{"float32", "int64", "uint8"};
  return names[data.index()];
}

std::span<const std::byte> Tensor::bytes() const {
  return std::visit([](const auto& values) { return std::as_bytes(std::span(values)); }, data);
}

Digest256 PreprocessedItem::feature_digest() const {
  std::vector<FeatureTensor> views;
  views.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    views.push_back({tensor.name, std::string(tensor.dtype()), tensor.shape, tensor.bytes()});
  }
  SideData all = side;
  if (!all.grid) all.grid = grid;
  return vitrove::feature_digest(views, all.encode());
}

std::unique_ptr<Preprocessor> make_preprocessor(std::string_view config_json,
                                                std::string_view overrides,
                                                const PreprocessLimits& limits,
                                                std::string_view video_config_json) {
  const nlohmann::json config = parse_object(config_json, "the preprocessor configuration");
  const nlohmann::json video_config =
      parse_object(video_config_json, "the configuration of clips' preprocessing");
  const Overrides given(overrides);
  const ProcessorNames names = names_in(config, video_config);
  if (auto family = find_patch_family(names)) {
    return make_patch_processor(*family, config, video_config, given, limits);
  }
  if (const ImageFamily* family = find_image_family(names.image)) {
    return make_image_processor(*family, config, given, limits);
  }
  if (auto family = find_sound_family(names.image, names.processor)) {
    return make_sound_processor(*family, config, given, limits);
  }
  refuse_processor(names.image);
}

std::unique_ptr<Preprocessor> load_preprocessor(const std::filesystem::path& config_file,
                                                std::string_view overrides,
                                                const PreprocessLimits& limits) {
  const std::string config = read_config(config_file);
  const auto video_file = config_file.parent_path() / "video_preprocessor_config.json";
  std::error_code ignored;
  const bool has_video = std::filesystem::is_regular_file(video_file, ignored);
  return make_preprocessor(config, overrides, limits,
                           has_video ? read_config(video_file) : std::string());
}

}  // namespace vitrove
