// Shared by the tests of preprocess/.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "support/paths.h"
#include "vitrove/error.h"
#include "vitrove/preprocess.h"

namespace vitrove::test {

inline std::filesystem::path data_dir() { return vitrove::test::source_dir() / "tests" / "data"; }

inline nlohmann::json read_json(std::string_view below_data) {
  std::ifstream in(data_dir() / below_data);
  EXPECT_TRUE(in) << below_data;
  return nlohmann::json::parse(in);
}

// Pseudo-random 32-bit words: the same as in the scripts that make fixtures.
inline std::uint32_t hashed(std::uint32_t i, std::uint32_t seed) {
  std::uint32_t n = (i + seed * 0x9e3779b9u) * 0x85ebca6bu;
  n ^= n >> 13;
  return n * 0xc2b2ae35u;
}

// The same pseudo-random picture as noise() in make_media_fixtures.py.
inline RgbImage noise_image(std::uint32_t width, std::uint32_t height, std::uint32_t seed) {
  RgbImage image{width, height, std::vector<std::uint8_t>(std::size_t{3} * width * height)};
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = static_cast<std::uint8_t>(hashed(static_cast<std::uint32_t>(i), seed) >> 24);
  }
  return image;
}

template <typename Value>
std::string crc_text(std::span<const Value> values) {
  const auto bytes = std::as_bytes(values);
  char text[9];
  std::snprintf(text, sizeof text, "%08lx",
                crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  return text;
}

struct Failure {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  int status() const { return http_status(code); }
};

template <typename Action>
Failure failure_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  ADD_FAILURE() << "expected an Error";
  return {};
}

}  // namespace vitrove::test
