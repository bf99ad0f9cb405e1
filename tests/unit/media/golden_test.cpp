// What the committed pictures decode to, by the word of Pillow and numpy.
#include "support.h"

namespace vitrove::test {
namespace {

nlohmann::json golden() {
  std::ifstream in(media_dir() / "golden.json");
  return nlohmann::json::parse(in);
}

void expect_golden(MediaFormat format) {
  const nlohmann::json entry = golden().at(std::string(to_string(format)));
  const auto versions = decoder_versions(format);
  ASSERT_EQ(versions.size(), 1u);
  EXPECT_EQ(versions[0].name, to_string(format));
  EXPECT_EQ(versions[0].version, entry.at("version").get<std::uint32_t>())
      << "raise the version in tests/data/make_media_fixtures.py as well, and run it";
  ASSERT_GT(entry.at("files").size(), 5u);
  for (const auto& [name, expected] : entry.at("files").items()) {
    SCOPED_TRACE(name);
    const DecodedImage decoded = decode_image(picture(name), {});
    EXPECT_EQ(decoded.format, format);
    EXPECT_EQ(decoded.image.width, expected.at("width").get<std::uint32_t>());
    EXPECT_EQ(decoded.image.height, expected.at("height").get<std::uint32_t>());
    EXPECT_EQ(crc_text(decoded.image.pixels), expected.at("crc32").get<std::string>())
        << "if the bytes were meant to change, raise the decoder's version";
  }
}

// A decoder's bytes may only change together with its version: old embeddings would be served for
// pictures that are decoded differently by now.
TEST(GoldenPictures, JpegFilesDecodeToThePinnedBytes) { expect_golden(MediaFormat::jpeg); }
TEST(GoldenPictures, PngFilesDecodeToThePinnedBytes) { expect_golden(MediaFormat::png); }
TEST(GoldenPictures, WebpFilesDecodeToThePinnedBytes) { expect_golden(MediaFormat::webp); }

TEST(GoldenPictures, FormatsWithoutADecoderHaveNoVersion) {
  EXPECT_TRUE(decoder_versions(MediaFormat::gif).empty());
  EXPECT_TRUE(decoder_versions(MediaFormat::unknown).empty());
}

}  // namespace
}  // namespace vitrove::test
