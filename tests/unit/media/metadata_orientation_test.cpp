// Which way is up by the word of XMP and of a PNG's texts, as Pillow has it (field case B01).
#include "media/png_text.h"
#include "media/xmp.h"
#include "support.h"

namespace vitrove::test {
namespace {

using namespace std::string_view_literals;

constexpr auto sixth = Orientation::rotate_clockwise;

TEST(XmpOrientation, IsTheFirstThatIsANumber) {
  const std::vector<std::pair<std::string_view, std::optional<Orientation>>> table{
      {R"(<d tiff:Orientation="6"/>)", sixth},
      {"<tiff:Orientation>6</tiff:Orientation>", sixth},
      {R"(tiff:Orientation='6')", std::nullopt},
      {R"(tiff:Orientation = "6")", std::nullopt},
      {R"(tiff:Orientation="x" tiff:Orientation="6")", sixth},
      {R"(tiff:Orientation="6" tiff:Orientation="3")", sixth},
      {R"(tiff:Orientation="9")", Orientation::upright},
      {R"(tiff:Orientation="0")", Orientation::upright},
      {R"(tiff:Orientation=")", std::nullopt},
      {"tiff:Orientation>", std::nullopt},
      {"tiff:Orientation", std::nullopt},
      {"", std::nullopt}};
  for (const auto& [packet, expected] : table)
    EXPECT_EQ(xmp_orientation(packet), expected) << packet;
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(c));
    text += digits;
  }
  return text;
}

// A TIFF structure with nothing but the orientation.
std::string exif_of(char orientation) {
  std::string block("Exif\0\0MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1\0?\0\0\0\0\0\0"sv);
  block[block.find('?')] = orientation;
  return block;
}

std::string profile_of(const std::string& block) {
  const std::string digits = hex(block);
  return "\nexif\n      " + std::to_string(block.size()) + "\n" + digits.substr(0, 36) + "\n" +
         digits.substr(36) + "\n";
}

TEST(RawProfile, IsReadAsFarAsItIsOne) {
  const auto text_of = [](std::string_view text) { return to_text(raw_profile(text)); };
  EXPECT_EQ(text_of("\nexif\n  3\n616\n2 63\n"), "abc");
  EXPECT_EQ(text_of("\nexif\n  3\n6162ZZ63\n"), "ab");
  EXPECT_EQ(text_of("\nexif\n  3\n616"), "a");
  EXPECT_EQ(text_of("\nexif\n"), "");
  EXPECT_EQ(text_of(""), "");
}

constexpr std::string_view xmp_name = "XML:com.adobe.xmp";
constexpr std::string_view profile_name = "Raw profile type exif";

std::string plain_text(std::string_view name, const std::string& text) {
  return png_chunk("tEXt", std::string(name) + '\0' + text);
}
std::string packed_text(std::string_view name, const std::string& text) {
  return png_chunk("zTXt", std::string(name) + '\0' + '\0' + stored_deflate(text, 65'535));
}
std::string world_text(std::string_view name, const std::string& text, bool is_packed) {
  const std::string flags = is_packed ? std::string("\1\0"sv) : std::string(2, '\0');
  return png_chunk("iTXt", std::string(name) + '\0' + flags + "en" + '\0' + "name" + '\0' +
                               (is_packed ? stored_deflate(text, 65'535) : text));
}

// rgb8.png with chunks more before its data.
Bytes png_with(const std::string& chunks) {
  std::string file = to_text(picture("rgb8.png"));
  constexpr std::size_t behind_header = 8 + 25;
  return to_bytes(file.insert(behind_header, chunks));
}

bool is_turned(const Bytes& bytes) {
  const RgbImage plain = decode_picture("rgb8.png");
  return decode(bytes).width == plain.height;
}

TEST(PngTexts, TurnAPictureThatHasNoExifChunk) {
  const std::string xmp = R"(<d tiff:Orientation="6"/>)";
  const std::string profile = profile_of(exif_of(6));
  for (const std::string& chunk :
       {plain_text(xmp_name, xmp), packed_text(xmp_name, xmp), world_text(xmp_name, xmp, false),
        world_text(xmp_name, xmp, true), plain_text(profile_name, profile),
        packed_text(profile_name, profile), world_text(profile_name, profile, true)}) {
    EXPECT_TRUE(is_turned(png_with(chunk))) << chunk.substr(4, 40);
  }
  EXPECT_FALSE(is_turned(png_with(plain_text("Comment", xmp))));
  EXPECT_FALSE(is_turned(png_with(plain_text(xmp_name, ""))));
}

TEST(PngTexts, CountLessThanTheChunkAndTheProfileMoreThanXmp) {
  const std::string third = png_chunk("eXIf", exif_of(3).substr(6));
  const std::string no_tag = png_chunk("eXIf", std::string("MM\0*\0\0\0\x08\0\0\0\0\0\0"sv));
  const std::string profile = packed_text(profile_name, profile_of(exif_of(6)));
  const std::string xmp = world_text(xmp_name, R"(tiff:Orientation="8")", false);
  EXPECT_FALSE(is_turned(png_with(third + profile + xmp)));
  EXPECT_TRUE(is_turned(png_with(no_tag + xmp)));
  EXPECT_FALSE(is_turned(png_with(no_tag + profile))) << "Pillow does not look at it then";
  EXPECT_EQ(decode(png_with(profile + xmp)), decode(png_with(profile)));
  EXPECT_NE(decode(png_with(profile + xmp)), decode(png_with(xmp)));
}

TEST(PngTexts, ThatAreBrokenOrWithoutEndTurnNothing) {
  std::string broken = packed_text(xmp_name, R"(tiff:Orientation="6")");
  const std::string cut =
      png_chunk("zTXt", std::string(xmp_name) + std::string("\0\0\x78\x01\xff\xff"sv));
  EXPECT_FALSE(is_turned(png_with(cut)));
  const std::string far = std::string(1 << 20, ' ') + R"(tiff:Orientation="6")";
  EXPECT_FALSE(is_turned(png_with(packed_text(xmp_name, far)))) << "only so much is inflated";
  EXPECT_TRUE(is_turned(png_with(broken)));
}

// RIFF chunks behind the picture, and the flags that announce them.
TEST(WebpXmp, TurnsAPictureWhereExifDoesNot) {
  std::string file = to_text(picture("exif.webp"));
  const std::size_t exif = file.find("EXIF");
  ASSERT_NE(exif, file.npos);
  std::string packet = R"(<d tiff:Orientation="6"/> )";
  packet.resize(packet.size() + packet.size() % 2, ' ');
  const auto word = [](std::size_t value) {
    std::string text;
    for (int shift = 0; shift < 32; shift += 8) text += static_cast<char>(value >> shift);
    return text;
  };
  const auto with_xmp = [&](std::string start, char flags) {
    start += "XMP " + word(packet.size()) + packet;
    start[20] = flags;
    start.replace(4, 4, word(start.size() - 8));
    return to_bytes(start);
  };
  constexpr char has_xmp = 4;
  constexpr char has_exif = 8;
  const RgbImage turned = decode_picture("exif.webp");
  EXPECT_EQ(decode(with_xmp(file, has_xmp | has_exif)), turned) << "EXIF goes first";
  const RgbImage by_xmp = decode(with_xmp(file.substr(0, exif), has_xmp));
  EXPECT_EQ(by_xmp.width, turned.width);
  EXPECT_NE(by_xmp, turned) << "the other way round";
}

}  // namespace
}  // namespace vitrove::test
