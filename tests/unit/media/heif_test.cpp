// AVIF and HEIC through libheif, which the tests demand and the product does not.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "media/heif_library.h"
#include "support.h"

namespace vitrove::test {
namespace {

double mean_distance(const RgbImage& a, const RgbImage& b) {
  double difference = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) {
    difference += std::abs(int{a.pixels[i]} - int{b.pixels[i]});
  }
  return difference / static_cast<double>(a.pixels.size());
}

// Another decoder's rounding between YUV and RGB may differ by a little.
TEST(Avif, DecodesToWhatWasEncoded) {
  ASSERT_NE(heif_library(), nullptr) << "scripts/apt-packages.txt names it";
  const RgbImage decoded = decode_picture("plain.avif");
  const RgbImage original = decode_picture("plain_as_png.png");
  ASSERT_EQ(decoded.width, original.width);
  ASSERT_EQ(decoded.height, original.height);
  EXPECT_LT(mean_distance(decoded, original), 4.0);
}

// The picture in which the pixel at (x, y) is the one that `from` names in the original.
template <typename From>
RgbImage rearranged(const RgbImage& original, std::uint32_t width, std::uint32_t height,
                    From from) {
  RgbImage image{width, height, std::vector<std::uint8_t>(std::size_t{3} * width * height)};
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      const auto [from_x, from_y] = from(x, y);
      std::copy_n(original.row(from_y) + std::size_t{3} * from_x, 3,
                  image.row(y) + std::size_t{3} * x);
    }
  }
  return image;
}

TEST(Heif, TurnsAndMirrorsAreApplied) {
  ASSERT_NE(heif_library(), nullptr) << "scripts/apt-packages.txt names it";
  using Place = std::pair<std::uint32_t, std::uint32_t>;
  const RgbImage plain = decode_picture("heif_as_png.png");
  const std::uint32_t w = plain.width;
  const std::uint32_t h = plain.height;
  const RgbImage turned = rearranged(plain, h, w, [&](std::uint32_t x, std::uint32_t y) {
    return Place{w - 1 - y, x};
  });
  const RgbImage mirrored = rearranged(plain, w, h, [&](std::uint32_t x, std::uint32_t y) {
    return Place{w - 1 - x, y};
  });
  for (const std::string kind : {".heic", ".avif"}) {
    for (const auto& [name, expected] :
         {std::pair{"upright", &plain}, {"turned", &turned}, {"mirrored", &mirrored}}) {
      SCOPED_TRACE(name + kind);
      const RgbImage decoded = decode_picture(name + kind);
      ASSERT_EQ(decoded.width, expected->width);
      ASSERT_EQ(decoded.height, expected->height);
      EXPECT_LT(mean_distance(decoded, *expected), 8.0);  // colours are stored at half the size
    }
  }
}

// Cameras name the turn before the size, which some libheif read as a picture that is not turned.
TEST(Heif, TheTurnMayStandBeforeTheSize) {
  ASSERT_NE(heif_library(), nullptr) << "scripts/apt-packages.txt names it";
  using namespace std::string_view_literals;
  constexpr auto size_first = "\4\x81\x82\x83\x84"sv;  // how many properties, and which
  constexpr auto turn_first = "\4\x84\x81\x82\x83"sv;
  for (const char* name : {"turned.heic", "turned.avif"}) {
    SCOPED_TRACE(name);
    Bytes bytes = picture(name);
    const std::size_t at = find(bytes, size_first);
    ASSERT_LT(at, bytes.size());
    std::ranges::copy(std::as_bytes(std::span(turn_first)),
                      bytes.begin() + static_cast<std::ptrdiff_t>(at));
    EXPECT_EQ(decode(bytes), decode_picture(name));
  }
}

TEST(Avif, ADamagedFileIsRefused) {
  ASSERT_NE(heif_library(), nullptr) << "scripts/apt-packages.txt names it";
  Bytes bytes = picture("plain.avif");
  bytes.resize(bytes.size() / 2);
  const Failure failure = decode_failure(bytes);
  EXPECT_EQ(failure.status(), 400);
  expect_safe_for_clients(failure.message);
}

// The library is looked for once a process, so this is a process of its own.
TEST(AvifDeathTest, WithoutTheLibraryTheAnswerSaysSo) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("VITROVE_LIBHEIF_LIBRARY", "/nowhere/libheif.so",
               1);  // NOLINT(concurrency-mt-unsafe)
        const Failure failure = decode_failure(picture("plain.avif"));
        const bool is_told =
            failure.status() == 415 && failure.message.find("libheif") != std::string::npos;
        std::_Exit(is_told ? 42 : 1);
      },
      testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace vitrove::test
