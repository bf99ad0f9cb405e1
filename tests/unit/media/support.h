// Shared by the tests of media/: the committed pictures and ways to compare with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "support/paths.h"
#include "support/png_maker.h"
#include "vitrove/error.h"
#include "vitrove/media.h"

namespace vitrove::test {

inline std::filesystem::path media_dir() {
  return vitrove::test::source_dir() / "tests" / "data" / "media";
}

inline Bytes read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

inline Bytes picture(std::string_view name) { return read_file(media_dir() / name); }

inline std::string to_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::size_t find(const Bytes& bytes, std::string_view text, std::size_t from = 0) {
  return to_text(bytes).find(text, from);
}

inline RgbImage decode(std::span<const std::byte> bytes, const ImageLimits& limits = {}) {
  return decode_image(bytes, limits).image;
}

inline RgbImage decode_picture(std::string_view name) { return decode(picture(name)); }

inline std::string crc_text(std::span<const std::uint8_t> bytes) {
  char text[9];
  std::snprintf(text, sizeof text, "%08lx", crc32_z(0, bytes.data(), bytes.size()));
  return text;
}

// What went wrong, or an empty message when nothing did.
struct Failure {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::string detail;
  int status() const { return http_status(code); }
};

template <typename Action>
Failure failure_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what(), error.detail()};
  }
  ADD_FAILURE() << "expected an Error";
  return {};
}

inline Failure decode_failure(std::span<const std::byte> bytes, const ImageLimits& limits = {}) {
  return failure_of([&] { decode(bytes, limits); });
}

// Field case B87: nothing that looks like an address, a path or a host.
inline void expect_safe_for_clients(const std::string& message) {
  EXPECT_FALSE(message.empty());
  EXPECT_LT(message.size(), 300u);
  EXPECT_EQ(message.find("0x"), std::string::npos) << message;
  for (const char* part : {"/home", "/tmp", "/usr", "/etc", "/proc", "127.0.0.1", "localhost"}) {
    EXPECT_EQ(message.find(part), std::string::npos) << message;
  }
}

}  // namespace vitrove::test
