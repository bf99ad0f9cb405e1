// Decoding and resizing photographs, beside Pillow on the same files.
//
// JPEG files of 2 to 12 megapixels (bench/pillow_media.py writes them) are decoded and resized
// (bicubic, bit for bit Pillow's) to what Qwen2-VL makes of them and to 224 x 224. One thread on
// each side; its processor time is what counts, so that a busy machine disturbs neither. Own
// option:
// --python PROGRAM, one with Pillow.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include "coprocess.h"
#include "harness.h"
#include "preprocess/resize.h"
#include "vitrove/media.h"
#include "vitrove/preprocess.h"

namespace {

namespace fs = std::filesystem;
using namespace vitrove;
using bench::Harness;

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (fs::temp_directory_path() / "vitrove-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

struct Photograph {
  std::string name;
  Size size;
  std::vector<std::byte> bytes;

  double megapixels() const { return 1e-6 * size.width * size.height; }
};

Photograph read_photograph(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(text));
  Photograph photo{file.stem().string(), {}, {bytes.begin(), bytes.end()}};
  const RgbImage image = decode_image(photo.bytes, {}).image;
  photo.size = {image.width, image.height};
  return photo;
}

// What Qwen2-VL makes of a picture: with the processor's own default of 1280 tokens at most, and
// with the 16384 that are published with the models.
Size qwen2_vl_size(const Photograph& photo, std::string_view config) {
  const auto preprocessor =
      make_preprocessor(R"({"image_processor_type": "Qwen2VLImageProcessor"})", config);
  const auto item = preprocessor->run(
      {photo.size.width, photo.size.height,
       std::vector<std::uint8_t>(std::size_t{3} * photo.size.width * photo.size.height)},
      preprocessor->resolve(Modality::image, ""));
  return {item.grid->w * 14, item.grid->h * 14};
}

class Comparison {
 public:
  Comparison(Harness& harness, bench::Coprocess& pillow) : harness_(harness), pillow_(pillow) {}

  void run(const Photograph& photo, const std::string& what, const Size& size, double target) {
    const auto ours = [&] {
      return photo.megapixels() / bench::processor_seconds_of([&] {
               const RgbImage image = decode_image(photo.bytes, {}).image;
               bench::keep(resize(image, size, Resampling::bicubic));
             });
    };
    const auto other = [&] {
      return photo.megapixels() / pillow_.ask(photo.name + ".jpg " + std::to_string(size.width) +
                                              " " + std::to_string(size.height));
    };
    harness_.compare(
        {"media_" + photo.name + "_to_" + what, "MP/s", "Pillow", bench::ratio_at_least(target)},
        ours, other);
  }

  // Where the time goes; nothing is promised.
  void run_decoding(const Photograph& photo) {
    harness_.compare(
        {"media_" + photo.name + "_decoded_only", "MP/s", "Pillow", {}},
        [&] {
          return photo.megapixels() /
                 bench::processor_seconds_of([&] { bench::keep(decode_image(photo.bytes, {})); });
        },
        [&] { return photo.megapixels() / pillow_.ask(photo.name + ".jpg 0 0"); });
  }

 private:
  Harness& harness_;
  bench::Coprocess& pillow_;
};

void run(Harness& harness) {
  const TemporaryDirectory directory;
  const fs::path script = fs::path(VITROVE_BENCH_SOURCE_DIR) / "pillow_media.py";
  const std::string python = harness.option(
      "--python",
      (fs::path(VITROVE_BENCH_SOURCE_DIR).parent_path() / "build/venv/bin/python").string());
  bench::Coprocess pillow({python, script.string(), directory.path().string()});
  pillow.ask("");
  Comparison comparison(harness, pillow);
  for (const char* name : {"2mp", "5mp", "8mp", "12mp"}) {
    const Photograph photo = read_photograph(directory.path() / (std::string(name) + ".jpg"));
    comparison.run(photo, "qwen2_vl_1280_tokens", qwen2_vl_size(photo, ""), 2.0);
    comparison.run(photo, "qwen2_vl_16384_tokens",
                   qwen2_vl_size(photo, R"({"image": {"max_pixels": 12845056}})"), 2.0);
    comparison.run(photo, "224", {224, 224}, 1.5);
    comparison.run_decoding(photo);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Harness harness(argc, argv, {"--python"});
    run(harness);
    return harness.finish();
  } catch (const std::exception& error) {
    std::cerr << "bench_media: " << error.what() << '\n';
    return 1;
  }
}
