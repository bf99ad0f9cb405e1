// Shared by the tests of encoders/: items made by hand, directories that vanish, errors as values.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "vitrove/encoder.h"
#include "vitrove/error.h"
#include "vitrove/half.h"
#include "vitrove/preprocess.h"

namespace vitrove::test {

// What went wrong. Adds a failure when nothing did.
struct Failure {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::string detail;
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

inline bool is_one_line(std::string_view text) {
  return !text.empty() && text.find('\n') == std::string_view::npos;
}

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "vitrove-encoders-XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary).write(text.data(), std::ssize(text));
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline PreprocessedItem float_item(std::vector<std::int64_t> shape, std::vector<float> values) {
  PreprocessedItem item;
  item.tensors.push_back({"pixel_values", std::move(shape), std::move(values)});
  return item;
}

// `count` numbers that a test can foretell: first, first + 1, ...
inline std::vector<float> counting(std::size_t count, float first = 0) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
  return values;
}

// A picture whose pixels depend on `flavour`.
inline RgbImage make_picture(std::uint32_t width, std::uint32_t height, std::uint32_t flavour = 0) {
  RgbImage image{width, height, std::vector<std::uint8_t>(std::size_t{3} * width * height)};
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = static_cast<std::uint8_t>((i * 7 + flavour * 31) % 251);
  }
  return image;
}

inline PreprocessedItem preprocess(const Encoder& encoder, const RgbImage& image) {
  const Preprocessor& preprocessor = encoder.preprocessor();
  return preprocessor.run(image, preprocessor.resolve(Modality::image, {}));
}

inline std::vector<EncoderOutput> encode_all(Encoder& encoder,
                                             std::span<const PreprocessedItem> items) {
  std::vector<const PreprocessedItem*> pointers;
  for (const PreprocessedItem& item : items) pointers.push_back(&item);
  return encoder.encode(pointers);
}

inline EncoderOutput encode_one(Encoder& encoder, const PreprocessedItem& item) {
  return std::move(encode_all(encoder, std::span(&item, 1)).front());
}

inline std::vector<float> floats_of(const EncoderOutput& output, DType dtype = DType::float32) {
  std::vector<float> floats(output.bytes.size() / element_size(dtype));
  rows_to_float32(output.bytes, dtype, floats);
  return floats;
}

}  // namespace vitrove::test
