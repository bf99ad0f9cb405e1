// What the committed pictures decode to, by the word of Pillow and numpy.
#include <algorithm>
#include <cctype>

#include "support.h"

namespace vitrove::test {
namespace {

nlohmann::json golden(const char* file) {
  std::ifstream in(media_dir() / file);
  return nlohmann::json::parse(in);
}

void expect_golden(MediaFormat format, const char* file = "golden.json") {
  const nlohmann::json entry = golden(file).at(std::string(to_string(format)));
  const auto versions = decoder_versions(format);
  ASSERT_FALSE(versions.empty());
  EXPECT_EQ(versions[0].name, to_string(format));
  EXPECT_EQ(versions[0].version, entry.at("version").get<std::uint32_t>())
      << "raise the version in the script that makes the fixtures as well, and run it";
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
TEST(GoldenPictures, JpegsOfEveryKindDecodeToThePinnedBytes) {
  expect_golden(MediaFormat::jpeg, "golden_jpeg.json");
}
TEST(GoldenPictures, PngFilesDecodeToThePinnedBytes) { expect_golden(MediaFormat::png); }
TEST(GoldenPictures, WebpFilesDecodeToThePinnedBytes) { expect_golden(MediaFormat::webp); }

TEST(GoldenPictures, GifFilesDecodeToThePinnedBytes) {
  expect_golden(MediaFormat::gif, "golden_gif_bmp_tiff.json");
}
TEST(GoldenPictures, BmpFilesDecodeToThePinnedBytes) {
  expect_golden(MediaFormat::bmp, "golden_gif_bmp_tiff.json");
}
TEST(GoldenPictures, TiffFilesDecodeToThePinnedBytes) {
  expect_golden(MediaFormat::tiff, "golden_gif_bmp_tiff.json");
}

TEST(DecoderVersions, AnItemOfAModalityKnowsThemAll) {
  const auto versions = decoder_versions(Modality::image);
  for (const char* name : {"jpeg", "png", "webp", "gif", "bmp", "tiff", "heif"}) {
    EXPECT_TRUE(std::ranges::any_of(versions, [&](const PipelineVersion& version) {
      return version.name == name;
    })) << name;
  }
  EXPECT_EQ(decoder_versions(MediaFormat::avif), decoder_versions(MediaFormat::heic));
}

// Another FFmpeg may decode to other bytes.
TEST(DecoderVersions, OfClipsAndSoundsNameTheirFfmpeg) {
  for (const Modality modality : {Modality::video, Modality::audio}) {
    const auto versions = decoder_versions(modality);
    const auto codecs = std::ranges::find(versions, "libavcodec", &PipelineVersion::name);
    ASSERT_NE(codecs, versions.end());
    EXPECT_GT(codecs->version, 256u) << "major and minor";
  }
}

TEST(DecoderVersions, LibrariesOfThisHostAreTold) {
  for (const MediaLibrary& library : media_libraries()) {
    if (library.name == "libheif" && library.version.empty()) continue;  // may be missing
    ASSERT_FALSE(library.version.empty()) << library.name;
    EXPECT_TRUE(library.version == "unknown" || std::isdigit(library.version[0]) != 0)
        << library.name << " " << library.version;
  }
}

TEST(GoldenPictures, FormatsWithoutADecoderHaveNoVersion) {
  EXPECT_TRUE(decoder_versions(MediaFormat::svg).empty());
  EXPECT_TRUE(decoder_versions(MediaFormat::unknown).empty());
}

}  // namespace
}  // namespace vitrove::test
