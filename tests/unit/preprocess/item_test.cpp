// Preprocessed items: degenerate pictures (field case B11), the raw form, feature digests.
#include <cmath>

#include "preprocess/image_geometry.h"
#include "support.h"

namespace vitrove::test {
namespace {

constexpr std::string_view clip = R"({"image_processor_type": "CLIPImageProcessor"})";

TEST(DegeneratePictures, GiveAFullTensorOrAClearError) {
  const auto preprocessor = make_preprocessor(clip);
  const ResolvedParams params = preprocessor->resolve(Modality::image, "");
  for (const std::uint32_t width : {1u, 2u, 3u, 13u, 223u, 224u, 225u, 800u, 4096u, 65'535u}) {
    for (const std::uint32_t height : {1u, 2u, 14u, 225u}) {
      const RgbImage image = noise_image(width, height, 1);
      const PreprocessedItem item = preprocessor->run(image, params);
      ASSERT_EQ(item.primary().shape, (std::vector<std::int64_t>{3, 224, 224}));
      ASSERT_EQ(item.primary().floats().size(), 3u * 224 * 224);
      for (const float value : item.primary().floats()) ASSERT_TRUE(std::isfinite(value));
    }
  }
}

TEST(DegeneratePictures, SidesThatWouldBecomeAbsurdAreRefusedWithTheReason) {
  const auto preprocessor = make_preprocessor(clip);
  const RgbImage thread = noise_image(65'535, 1, 1);
  const ResolvedParams large =
      preprocessor->resolve(Modality::image, R"({"size": 4096, "crop_size": 4})");
  EXPECT_EQ(failure_of([&] { preprocessor->run(thread, large); }).status(), 400);
}

// Field case B83: memory is asked for before it is taken.
TEST(MemoryNeed, CoversTensorsAndPicturesOnTheWay) {
  constexpr std::uint64_t side = 4096;
  const auto preprocessor = make_preprocessor(clip, {}, {.max_pixels = side * side});
  const auto need = [&](std::uint32_t width, std::uint32_t height, std::string_view kwargs) {
    return preprocessor->bytes_beside(width, height,
                                      preprocessor->resolve(Modality::image, kwargs));
  };
  constexpr std::string_view large =
      R"({"size": {"height": 4096, "width": 4096}, "do_center_crop": false})";
  EXPECT_GE(need(1, 1, large), 15 * side * side) << "one pixel becomes RGB bytes and floats";
  EXPECT_LE(need(1, 1, large), 16 * side * side);
  EXPECT_GE(need(8000, 6000, ""), 15u * 224 * 224);
  EXPECT_LE(need(8000, 6000, ""), 1u << 20) << "what is cropped away is never made";
  EXPECT_EQ(failure_of([&] { need(20'000, 1, R"({"do_center_crop": false})"); }).status(), 413)
      << "before anything is decoded";
  EXPECT_EQ(make_raw_preprocessor()->bytes_beside(5, 7, {}), 3u * 5 * 7);
}

TEST(DegeneratePictures, APictureWithoutPixelsIsRefused) {
  const auto preprocessor = make_preprocessor(clip);
  const ResolvedParams params = preprocessor->resolve(Modality::image, "");
  EXPECT_EQ(failure_of([&] { preprocessor->run(RgbImage{}, params); }).status(), 400);
}

TEST(Geometry, TheLongerSideIsRoundedDown) {
  const auto preprocessor = make_preprocessor(clip);
  const ResolvedParams params =
      preprocessor->resolve(Modality::image, R"({"size": 100, "do_center_crop": false})");
  const auto shape = [&](std::uint32_t width, std::uint32_t height) {
    return preprocessor->run(noise_image(width, height, 1), params).primary().shape;
  };
  EXPECT_EQ(shape(3, 2), (std::vector<std::int64_t>{3, 100, 150}));
  EXPECT_EQ(shape(300, 299), (std::vector<std::int64_t>{3, 100, 100}));
  EXPECT_EQ(shape(200, 333), (std::vector<std::int64_t>{3, 166, 100}));
}

TEST(Geometry, ACropBeyondThePictureIsPaddedWithBlack) {
  const auto preprocessor = make_preprocessor(clip);
  const ResolvedParams params = preprocessor->resolve(
      Modality::image, R"({"do_resize": false, "crop_size": {"height": 4, "width": 5},
                           "do_normalize": false, "rescale_factor": 1})");
  const RgbImage white{2, 1, std::vector<std::uint8_t>(6, 255)};
  const PreprocessedItem item = preprocessor->run(white, params);
  const std::vector<float> expected{0, 0, 0,   0,   0,  //
                                    0, 0, 0,   0,   0,  //
                                    0, 0, 255, 255, 0,  //
                                    0, 0, 0,   0,   0};
  const auto first = item.primary().floats().first(20);
  EXPECT_EQ(std::vector<float>(first.begin(), first.end()), expected);
}

TEST(RawPreprocessor, KeepsThePixels) {
  const auto raw = make_raw_preprocessor();
  const RgbImage image = noise_image(7, 5, 3);
  const PreprocessedItem item = raw->run(image, raw->resolve(Modality::image, "{}"));
  EXPECT_EQ(item.primary().shape, (std::vector<std::int64_t>{5, 7, 3}));
  EXPECT_EQ(item.primary().dtype(), "uint8");
  EXPECT_EQ(std::get<std::vector<std::uint8_t>>(item.primary().data), image.pixels);
  EXPECT_EQ(failure_of([&] { raw->resolve(Modality::image, R"({"size": 1})"); }).status(), 400);
}

Digest256 raw_digest(const RgbImage& image) {
  return make_raw_preprocessor()->run(image, {}).feature_digest();
}

TEST(FeatureDigest, TheSameBytesInAnotherShapeDiffer) {
  const RgbImage tall = noise_image(30, 150, 5);
  const RgbImage wide{150, 30, tall.pixels};
  EXPECT_NE(raw_digest(tall), raw_digest(wide));
  EXPECT_EQ(raw_digest(tall), raw_digest(tall));
}

TEST(FeatureDigest, CoversNamesTypesGridAndSideData) {
  PreprocessedItem item;
  item.tensors.push_back({"a", {2}, std::vector<float>{1, 2}});
  const Digest256 first = item.feature_digest();
  std::vector<Digest256> digests{first};
  const auto expect_new = [&](const PreprocessedItem& changed) {
    const Digest256 digest = changed.feature_digest();
    EXPECT_EQ(std::ranges::count(digests, digest), 0);
    digests.push_back(digest);
  };
  PreprocessedItem changed = item;
  changed.tensors[0].name = "b";
  expect_new(changed);
  changed = item;
  changed.tensors[0].data = std::vector<std::int64_t>{1, 2};
  expect_new(changed);
  changed = item;
  changed.tensors[0].data = std::vector<float>{1, 3};
  expect_new(changed);
  changed = item;
  changed.tensors.push_back({"b", {0}, std::vector<float>{}});
  expect_new(changed);
  changed = item;
  changed.grid = Grid{1, 2, 3};
  expect_new(changed);
  changed = item;
  changed.side.timestamps = {0.5};
  expect_new(changed);
}

}  // namespace
}  // namespace vitrove::test
