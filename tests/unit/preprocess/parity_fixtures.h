// What scripts/make_parity_fixtures.py wrote, and the inputs that it made by formula.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "support.h"
#include "vitrove/audio.h"
#include "vitrove/video.h"

namespace vitrove::test {

inline std::vector<std::byte> file_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class ParityFixtures {
 public:
  ParityFixtures() : index_(read_json("parity/index.json")) {
    const auto packed = file_bytes(data_dir() / "parity" / "values.bin.z");
    const auto count = index_.at("values").get<std::size_t>();
    std::vector<std::uint8_t> planes(4 * count);
    uLongf size = planes.size();
    EXPECT_EQ(uncompress(planes.data(), &size, reinterpret_cast<const Bytef*>(packed.data()),
                         packed.size()),
              Z_OK);
    EXPECT_EQ(size, planes.size());
    values_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t bits = 0;
      for (std::size_t plane = 0; plane < 4; ++plane) {
        bits |= std::uint32_t{planes[plane * count + i]} << (8 * plane);
      }
      std::memcpy(&values_[i], &bits, sizeof bits);
    }
  }

  const nlohmann::json& all() const { return index_.at("fixtures"); }
  // Which frames the references take of clips of many lengths.
  const nlohmann::json& sampling() const { return index_.at("sampling"); }
  // How large qwen-vl-utils makes the frames of clips.
  const nlohmann::json& clip_sizes() const { return index_.at("clip_sizes"); }
  std::unique_ptr<Preprocessor> preprocessor_of(const nlohmann::json& fixture) const {
    const std::string config = index_.at("configs").at(fixture.at("config")).dump();
    const auto& video = fixture.at("video_config");
    return make_preprocessor(
        config, {}, {},
        video.is_null() ? std::string() : index_.at("video_configs").at(video).dump());
  }

  // Calls `compare(place in the tensor, expected value)` for every value that is kept.
  template <typename Compare>
  void each_value(const nlohmann::json& tensor, std::size_t size, Compare compare) const {
    const auto offset = tensor.at("offset").get<std::size_t>();
    const auto count = tensor.at("count").get<std::size_t>();
    const auto step = index_.at("step").get<std::uint64_t>();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t place = count == size ? i : i * step % size;
      compare(place, values_.at(offset + i));
    }
  }

 private:
  nlohmann::json index_;
  std::vector<float> values_;
};

// The formulas of the script.
inline RgbImage pattern_image(std::uint32_t width, std::uint32_t height, std::uint32_t seed) {
  RgbImage image{width, height, {}};
  image.pixels.reserve(std::size_t{3} * width * height);
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      for (std::uint32_t c = 0; c < 3; ++c) {
        const std::uint32_t value = x * (3 + c) + y * (5 - c) + (x * y >> 4) + seed * 37;
        image.pixels.push_back(static_cast<std::uint8_t>(value % 256));
      }
    }
  }
  return image;
}

inline std::vector<float> tone(std::size_t count, std::uint32_t seed) {
  const auto triangle = [](std::int64_t i, std::int64_t step) {
    return std::abs((i * step) % 65'536 - 32'768) - 16'384;
  };
  const auto floor_divided = [](std::int64_t value, std::int64_t by) {
    return (value - ((value % by + by) % by)) / by;
  };
  std::vector<float> samples;
  samples.reserve(count);
  for (std::size_t n = 0; n < count; ++n) {
    const auto i = static_cast<std::int64_t>(n);
    const std::int64_t swell = std::abs((i * 3) % 65'536 - 32'768);
    const std::int64_t grain =
        std::int64_t{hashed(static_cast<std::uint32_t>(n), seed) >> 22} - 512;
    const std::int64_t pitches = triangle(i, 901 + std::int64_t{40} * seed) +
                                 floor_divided(triangle(i, 2741 + std::int64_t{90} * seed), 2);
    const std::int64_t value = floor_divided(pitches * swell, 32'768) + grain;
    samples.push_back(static_cast<float>(static_cast<double>(value) / 32'768));
  }
  return samples;
}

inline std::uint32_t number(const nlohmann::json& list, std::size_t place) {
  return list.at(place).get<std::uint32_t>();
}

inline RgbImage picture_of(const nlohmann::json& input) {
  if (input.contains("file")) {
    return decode_image(file_bytes(data_dir() / input.at("file").get<std::string>()), {}).image;
  }
  const bool is_noise = input.contains("noise");
  const auto& numbers = input.at(is_noise ? "noise" : "pattern");
  const auto make = is_noise ? noise_image : pattern_image;
  return make(number(numbers, 0), number(numbers, 1), number(numbers, 2));
}

inline VideoClip clip_of(const nlohmann::json& input, const VideoSampling& sampling) {
  if (input.contains("file")) {
    const auto bytes = file_bytes(data_dir() / input.at("file").get<std::string>());
    return decode_video(bytes, sampling, {}).clip;
  }
  const auto& numbers = input.at("frames");
  VideoClip clip;
  clip.sample_fps = input.at("fps");
  for (std::uint32_t i = 0; i < number(numbers, 2); ++i) {
    clip.frames.push_back(
        noise_image(number(numbers, 0), number(numbers, 1), number(numbers, 3) + i));
    clip.timestamps.push_back(i / clip.sample_fps);
  }
  return clip;
}

inline AudioClip sound_of(const nlohmann::json& input, std::uint32_t rate) {
  if (input.contains("file")) {
    const auto bytes = file_bytes(data_dir() / input.at("file").get<std::string>());
    return decode_audio(bytes, rate, {}).clip;
  }
  const auto& numbers = input.at("tone");
  return {tone(number(numbers, 0), number(numbers, 1)), rate};
}

}  // namespace vitrove::test
