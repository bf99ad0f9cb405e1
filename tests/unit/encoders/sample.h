// The sample models, pictures and the ONNX Runtime library that scripts/setup.sh leaves under
// build/. Tests that need them fail without, since a skipped test proves nothing.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "support.h"
#include "support/paths.h"
#include "vitrove/encoder.h"
#include "vitrove/media.h"

namespace vitrove::test {

inline std::filesystem::path set_up_file(const std::filesystem::path& below_build) {
  auto path = vitrove::test::source_dir() / "build" / below_build;
  if (!std::filesystem::exists(path)) {
    throw std::runtime_error("build/" + below_build.string() +
                             " is missing: run scripts/setup.sh first");
  }
  return path;
}

inline std::string onnxruntime_library() {
  const char* named = std::getenv("VITROVE_ONNXRUNTIME_LIBRARY");
  if (named != nullptr && std::filesystem::exists(named)) return named;
  return set_up_file("deps/onnxruntime/lib/libonnxruntime.so.1").string();
}

inline EncoderOptions onnx_options() {
  EncoderOptions options;
  options.threads = 1;
  options.onnxruntime_library = onnxruntime_library();
  return options;
}

inline RgbImage sample_picture(const std::string& name) {
  const std::string bytes = read_file(set_up_file("sample/pictures/" + name));
  return decode_image(std::as_bytes(std::span(bytes)), {}).image;
}

}  // namespace vitrove::test
