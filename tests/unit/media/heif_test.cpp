// AVIF and HEIC, where libheif is installed.
#include <cstdlib>

#include "media/heif_library.h"
#include "support.h"

namespace vitrove::test {
namespace {

// Another decoder's rounding between YUV and RGB may differ by a little.
TEST(Avif, DecodesToWhatWasEncoded) {
  if (heif_library() == nullptr) GTEST_SKIP() << "libheif is not installed";
  const RgbImage decoded = decode_picture("plain.avif");
  const RgbImage original = decode_picture("plain_as_png.png");
  ASSERT_EQ(decoded.width, original.width);
  ASSERT_EQ(decoded.height, original.height);
  double difference = 0;
  for (std::size_t i = 0; i < decoded.pixels.size(); ++i) {
    difference += std::abs(int{decoded.pixels[i]} - int{original.pixels[i]});
  }
  EXPECT_LT(difference / static_cast<double>(decoded.pixels.size()), 4.0);
}

TEST(Avif, ADamagedFileIsRefused) {
  if (heif_library() == nullptr) GTEST_SKIP() << "libheif is not installed";
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
