// Resizing is Pillow's, bit for bit.
#include "preprocess/resize.h"

#include <map>

#include "support.h"

namespace vitrove::test {
namespace {

Resampling filter_named(const std::string& name) {
  const std::map<std::string, Resampling> names{
      {"nearest", Resampling::nearest},   {"lanczos", Resampling::lanczos},
      {"bilinear", Resampling::bilinear}, {"bicubic", Resampling::bicubic},
      {"box", Resampling::box},           {"hamming", Resampling::hamming}};
  return names.at(name);
}

constexpr std::array all_filters{Resampling::nearest, Resampling::lanczos, Resampling::bilinear,
                                 Resampling::bicubic, Resampling::box,     Resampling::hamming};

TEST(Resize, EqualsPillowForAllFiltersSizesAndRatios) {
  const nlohmann::json golden = read_json("resize/golden.json");
  ASSERT_GT(golden.at("cases").size(), 100u);
  for (const auto& item : golden.at("cases")) {
    SCOPED_TRACE(item.dump());
    const RgbImage image =
        noise_image(item.at("from").at(0), item.at("from").at(1), item.at("seed"));
    const Size size{item.at("to").at(0), item.at("to").at(1)};
    const RgbImage out = resize(image, size, filter_named(item.at("filter")));
    EXPECT_EQ(out.width, size.width);
    EXPECT_EQ(out.height, size.height);
    EXPECT_EQ(crc_text(std::span<const std::uint8_t>(out.pixels)), item.at("crc32"));
  }
}

RgbImage cut(const RgbImage& image, const Window& window) {
  RgbImage result{window.columns.length, window.rows.length, {}};
  for (std::uint32_t y = 0; y < window.rows.length; ++y) {
    const std::uint8_t* from =
        image.row(window.rows.start + y) + std::size_t{3} * window.columns.start;
    result.pixels.insert(result.pixels.end(), from, from + result.row_bytes());
  }
  return result;
}

TEST(Resize, AWindowHoldsTheSameBytesAsTheWholePicture) {
  const RgbImage image = noise_image(93, 71, 3);
  for (const Size size : {Size{40, 40}, Size{93, 30}, Size{30, 71}, Size{200, 150}, Size{93, 71}}) {
    for (const Resampling filter : all_filters) {
      const RgbImage whole = resize(image, size, filter);
      for (const Window& window :
           {Window{{0, 1}, {0, 1}}, Window{{5, 17}, {9, 20}},
            Window{{size.width - 1, 1}, {size.height - 1, 1}}, Window{{0, size.width}, {3, 2}},
            Window{{3, 2}, {0, size.height}}}) {
        EXPECT_EQ(resize(image, size, filter, window), cut(whole, window));
      }
    }
  }
}

TEST(Resize, EveryInstructionSetGivesTheSameBytes) {
  const std::pair<std::uint32_t, std::uint32_t> shapes[] = {{67, 45}, {16, 16},  {300, 17}, {1, 33},
                                                            {5, 1},   {1023, 5}, {31, 200}};
  for (const auto& [width, height] : shapes) {
    const RgbImage image = noise_image(width, height, width);
    for (const Size size : {Size{50, 31}, Size{3, 3}, Size{128, 99}, Size{1, 200}}) {
      const Window all{{0, size.width}, {0, size.height}};
      const Window part{{size.width / 2, size.width - size.width / 2}, {1, 2}};
      for (const Resampling filter : all_filters) {
        for (const Window& window : {all, part}) {
          EXPECT_EQ(resize(image, size, filter, window, best_kernels()),
                    resize(image, size, filter, window, portable_kernels()));
        }
      }
    }
  }
}

// Sums beyond what a byte holds, both ways.
TEST(Resize, ExtremesOfBytesComeOutOfAllInstructionSetsAlike) {
  RgbImage image{64, 64, std::vector<std::uint8_t>(64 * 64 * 3)};
  for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = i / 3 % 2 == 0 ? 255 : 0;
  for (const Size size : {Size{640, 640}, Size{65, 63}, Size{7, 9}}) {
    const Window all{{0, size.width}, {0, size.height}};
    for (const Resampling filter : all_filters) {
      EXPECT_EQ(resize(image, size, filter, all, best_kernels()),
                resize(image, size, filter, all, portable_kernels()));
    }
  }
}

TEST(Resize, TheSameSizeChangesNothing) {
  const RgbImage image = noise_image(37, 19, 1);
  for (const Resampling filter : all_filters) {
    EXPECT_EQ(resize(image, {37, 19}, filter), image);
  }
}

TEST(Resize, AFlatPictureStaysFlat) {
  RgbImage image{50, 40, std::vector<std::uint8_t>(50 * 40 * 3, 137)};
  for (const Resampling filter : all_filters) {
    const RgbImage out = resize(image, {77, 23}, filter);
    EXPECT_EQ(out.pixels, std::vector<std::uint8_t>(77 * 23 * 3, 137));
  }
}

// Memory follows the window: this picture would have more than four billion pixels.
TEST(Resize, AWindowOfAnEnormousPictureIsCheap) {
  const RgbImage image = noise_image(20'000, 1, 2);
  const RgbImage out =
      resize(image, {20'000 * 224, 224}, Resampling::bicubic, {{2'000'000, 224}, {0, 224}});
  EXPECT_EQ(out.width, 224u);
  EXPECT_EQ(out.height, 224u);
}

}  // namespace
}  // namespace vitrove::test
