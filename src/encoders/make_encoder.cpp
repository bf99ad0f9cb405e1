#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include <nlohmann/json.hpp>

#include "encoders/onnx/onnx_encoder.h"
#include "encoders/stub/stub_encoder.h"
#include "vitrove/encoder.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr std::string_view stub_kind = "stub";
constexpr std::string_view onnx_prefix = "onnx:";

// The stub's preprocessor takes no parameters but those of frame sampling; others that are given to
// it are refused and not ignored. Returns the defaults for video.
std::string stub_video_defaults(const Encoder& stub, const std::string& mm_process_config) {
  if (mm_process_config.empty()) return {};
  const auto config = nlohmann::json::parse(mm_process_config, nullptr, false);
  if (!config.is_object()) {
    throw Error(ErrorCode::invalid_argument, "the multimodal process config is no JSON object");
  }
  for (const auto& [name, kwargs] : config.items()) {
    const auto modality = parse_modality(name);
    if (!modality) {
      throw Error(ErrorCode::invalid_argument,
                  "the multimodal process config names '" + name + "', which is no modality");
    }
    if (kwargs.is_object() && kwargs.empty()) continue;
    stub.preprocessor().resolve(*modality, kwargs.dump());
  }
  const auto video = config.find("video");
  return video == config.end() ? std::string() : video->dump();
}

std::unique_ptr<Encoder> make_stub(std::string_view options, const EncoderOptions& encoder) {
  const StubOptions parsed = parse_stub_options(options);
  return std::make_unique<StubEncoder>(
      parsed, stub_video_defaults(StubEncoder(parsed), encoder.mm_process_config));
}

bool names_directory(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

std::unique_ptr<Encoder> make_onnx(std::string_view directory, const EncoderOptions& options) {
  const std::filesystem::path path(directory);
  if (!names_directory(path)) {
    throw Error(ErrorCode::invalid_argument, "the encoder's model directory does not exist",
                path.string());
  }
  return std::make_unique<OnnxEncoder>(path, options);
}

// "tensorrt:/models/x" means a kind of encoder; "./a:b" and "/a:b" mean directories.
std::string_view kind_of(std::string_view spec) {
  const auto colon = spec.find(':');
  if (colon == std::string_view::npos) return {};
  const std::string_view kind = spec.substr(0, colon);
  return kind.find_first_of("/.") == std::string_view::npos ? kind : std::string_view();
}

}  // namespace

std::unique_ptr<Encoder> make_encoder(std::string_view spec, const EncoderOptions& options) {
  if (options.threads < 0) {
    throw Error(ErrorCode::invalid_argument, "the encoder's number of threads is negative");
  }
  if (spec.empty()) throw Error(ErrorCode::invalid_argument, "no encoder is given");
  if (spec == stub_kind) return make_stub({}, options);
  const std::string_view kind = kind_of(spec);
  if (kind == stub_kind) return make_stub(spec.substr(stub_kind.size() + 1), options);
  if (spec.starts_with(onnx_prefix)) return make_onnx(spec.substr(onnx_prefix.size()), options);
  if (!kind.empty() && !names_directory(spec)) {
    throw Error(ErrorCode::invalid_argument, "unknown kind of encoder '" + std::string(kind) +
                                                 "' (known: onnx, stub, or a model directory)");
  }
  return make_onnx(spec, options);
}

}  // namespace vitrove
