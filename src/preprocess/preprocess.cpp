#include "vitrove/preprocess.h"

#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "preprocess/image_processor.h"
#include "preprocess/json_text.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr std::uintmax_t max_config_bytes = 1 << 20;

std::string text_of(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

const ImageFamily& family_of(const nlohmann::json& config) {
  std::string type = text_of(config, "image_processor_type");
  if (type.empty()) type = text_of(config, "feature_extractor_type");
  if (const ImageFamily* family = find_image_family(type)) return *family;
  const std::string what = type.empty()
                               ? "the preprocessor configuration names no image_processor_type"
                               : "unknown image processor '" + type.substr(0, 80) + "'";
  throw Error(ErrorCode::invalid_argument, what + " (known: " + known_image_processors() + ")");
}

nlohmann::json image_overrides(std::string_view text) {
  const nlohmann::json all = parse_object(text, "the preprocessing configuration");
  for (const auto& [name, value] : all.items()) {
    if (!parse_modality(name) || !value.is_object()) {
      throw Error(ErrorCode::invalid_argument,
                  "the preprocessing configuration maps image, video and audio to objects");
    }
  }
  return all.value("image", nlohmann::json::object());
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

std::uint64_t Preprocessor::video_bytes_beside(const MediaShape&, const ResolvedParams&) const {
  throw_no_such_modality(family(), Modality::video);
}

PreprocessedItem Preprocessor::run_video(const VideoClip&, const ResolvedParams&) const {
  throw_no_such_modality(family(), Modality::video);
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
                                                const PreprocessLimits& limits) {
  const nlohmann::json config = parse_object(config_json, "the preprocessor configuration");
  const ImageFamily& family = family_of(config);
  ImageParams params = family.defaults;
  apply_json(config, ParamSource::file, family, params);
  apply_json(image_overrides(overrides), ParamSource::request, family, params);
  check_params(params, limits);
  return std::make_unique<ImageProcessor>(family, params, limits);
}

std::unique_ptr<Preprocessor> load_preprocessor(const std::filesystem::path& config_file,
                                                std::string_view overrides,
                                                const PreprocessLimits& limits) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(config_file, error);
  std::ifstream in(config_file, std::ios::binary);
  if (error || !in) {
    throw Error(ErrorCode::not_found, "the preprocessor configuration cannot be read",
                config_file.string());
  }
  if (size > max_config_bytes) {
    throw Error(ErrorCode::invalid_argument, "the preprocessor configuration is too long");
  }
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return make_preprocessor(text, overrides, limits);
}

}  // namespace vitrove
