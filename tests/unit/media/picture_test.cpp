// One picture, one result: whatever orientation, colour type or transparency a file uses.
#include <cmath>
#include <utility>

#include "support.h"

namespace vitrove::test {
namespace {

// Where pixel (x, y) of the stored picture must appear for each EXIF orientation.
std::pair<std::size_t, std::size_t> upright_place(int orientation, std::size_t x, std::size_t y,
                                                  std::size_t width, std::size_t height) {
  const std::size_t right = width - 1 - x;
  const std::size_t below = height - 1 - y;
  switch (orientation) {
    case 2:
      return {right, y};
    case 3:
      return {right, below};
    case 4:
      return {x, below};
    case 5:
      return {y, x};
    case 6:
      return {below, x};
    case 7:
      return {below, right};
    case 8:
      return {y, right};
    default:
      return {x, y};
  }
}

TEST(ExifOrientation, EveryValueTurnsThePictureUpright) {
  const RgbImage stored = decode_picture("orientation_1.jpg");
  for (int orientation = 1; orientation <= 8; ++orientation) {
    SCOPED_TRACE(orientation);
    const RgbImage image = decode_picture("orientation_" + std::to_string(orientation) + ".jpg");
    const bool swapped = orientation >= 5;
    ASSERT_EQ(image.width, swapped ? stored.height : stored.width);
    ASSERT_EQ(image.height, swapped ? stored.width : stored.height);
    for (std::size_t y = 0; y < stored.height; ++y) {
      for (std::size_t x = 0; x < stored.width; ++x) {
        const auto [to_x, to_y] = upright_place(orientation, x, y, stored.width, stored.height);
        ASSERT_EQ(std::memcmp(stored.row(y) + 3 * x, image.row(to_y) + 3 * to_x, 3), 0);
      }
    }
  }
}

// The caller is asked with upright sides, and gets them smaller, rounded up.
TEST(ScaledDecoding, GivesAJpegOfTheReductionThatIsAskedFor) {
  const RgbImage whole = decode_picture("orientation_6.jpg");
  for (const std::uint32_t reduction : {1u, 2u, 4u, 8u}) {
    std::pair<std::uint32_t, std::uint32_t> asked;
    DecodeContext context;
    context.jpeg_reduction = [&](std::uint32_t width, std::uint32_t height) {
      asked = {width, height};
      return reduction;
    };
    const RgbImage image = decode_image(picture("orientation_6.jpg"), {}, context).image;
    EXPECT_EQ(asked, std::pair(whole.width, whole.height));
    EXPECT_EQ(image.width, (whole.width + reduction - 1) / reduction);
    EXPECT_EQ(image.height, (whole.height + reduction - 1) / reduction);
    EXPECT_EQ(decode_image(picture("plain_as_png.png"), {}, context).image,
              decode_picture("plain_as_png.png"))
        << "other formats are decoded whole";
  }
}

TEST(ExifOrientation, AMalformedBlockCountsAsUpright) {
  const RgbImage stored = decode_picture("orientation_1.jpg");
  EXPECT_EQ(decode_picture("orientation_bad_offset.jpg"), stored);
  EXPECT_EQ(decode_picture("orientation_out_of_range.jpg"), stored);
}

TEST(ExifOrientation, IsAppliedInPngAndWebpToo) {
  EXPECT_EQ(decode_picture("exif_before.png").width, 16u);
  EXPECT_EQ(decode_picture("exif_before.png"), decode_picture("exif_after.png"));
  EXPECT_EQ(decode_picture("exif.webp").width, 16u);
}

TEST(Transparency, AllFormsThatLookAlikeOnWhiteDecodeAlike) {
  const RgbImage flat = decode_picture("twin_flat.png");
  for (const char* name : {"twin_rgba.png", "twin_la.png", "twin_palette.png", "twin_rgb_key.png",
                           "twin_gray_key.png"}) {
    EXPECT_EQ(decode_picture(name), flat) << name;
  }
}

TEST(Depth, SixteenBitsAreScaledAndNotClamped) {
  const RgbImage ramp = decode_picture("gray16.png");
  std::array<bool, 256> seen{};
  for (const std::uint8_t value : ramp.pixels) seen[value] = true;
  EXPECT_GT(std::ranges::count(seen, true), 200);
}

TEST(Gray, BecomesThreeEqualChannels) {
  for (const char* name : {"gray.jpg", "gray8.png", "gray1.png", "la8.png"}) {
    const RgbImage image = decode_picture(name);
    ASSERT_EQ(image.pixels.size(), std::size_t{3} * image.width * image.height);
    for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
      ASSERT_EQ(image.pixels[i], image.pixels[i + 1]);
      ASSERT_EQ(image.pixels[i], image.pixels[i + 2]);
    }
  }
}

double mean_difference(const RgbImage& a, const RgbImage& b) {
  EXPECT_EQ(a.pixels.size(), b.pixels.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) sum += std::abs(a.pixels[i] - b.pixels[i]);
  return sum / static_cast<double>(a.pixels.size());
}

TEST(Inks, CmykLooksLikeTheRgbPictureItWasMadeFrom) {
  EXPECT_LT(mean_difference(decode_picture("cmyk.jpg"), decode_picture("plain.jpg")), 12);
}

TEST(Interlacing, ChangesNothing) {
  for (const char* name : {"gray1", "gray16", "rgb8", "palette4", "la8", "rgba16",
                           "palette_short_trns", "rgb8_trns"}) {
    EXPECT_EQ(decode_picture(std::string(name) + ".png"),
              decode_picture(std::string(name) + "_interlaced.png"))
        << name;
  }
}

TEST(Palettes, OneIndexPlaneWithTwoPalettesIsTwoPictures) {
  EXPECT_NE(decode_picture("index_red_on_white.png").pixels,
            decode_picture("index_blue_on_black.png").pixels);
}

TEST(Dimensions, TheSameBytesInAnotherShapeAreAnotherPicture) {
  const RgbImage tall = decode_picture("tall.png");
  const RgbImage wide = decode_picture("wide.png");
  EXPECT_EQ(tall.pixels, wide.pixels);
  EXPECT_NE(tall, wide);
}

TEST(Animation, TheFirstPictureCounts) {
  EXPECT_EQ(decode_picture("animated.png").width, 24u);
  const RgbImage still = decode_picture("animated.webp");
  const RgbImage canvas = decode_picture("animated_offset.webp");
  ASSERT_EQ(canvas.width, 40u);
  EXPECT_EQ(canvas.row(0)[0], 255);  // outside of the frame: white
  for (std::size_t y = 0; y < still.height; ++y) {
    EXPECT_EQ(std::memcmp(canvas.row(y + 6) + 30, still.row(y), still.row_bytes()), 0);
  }
}

}  // namespace
}  // namespace vitrove::test
