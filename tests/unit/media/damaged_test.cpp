// Damaged files are refused, never guessed at (field case B06), and never do harm.
#include <random>

#include "support.h"

namespace vitrove::test {
namespace {

Bytes without_tail(Bytes bytes, std::size_t count) {
  bytes.resize(bytes.size() - count);
  return bytes;
}

void expect_refused(const Bytes& bytes) {
  const Failure failure = decode_failure(bytes);
  EXPECT_EQ(failure.status(), 400) << failure.message;
  expect_safe_for_clients(failure.message);
}

TEST(TruncatedFiles, AreRefusedWhereverTheyWereCut) {
  for (const char* name : {"plain.jpg",
                           "progressive.jpg",
                           "gray.jpg",
                           "cmyk.jpg",
                           "restart.jpg",
                           "rgb8.png",
                           "rgba8_interlaced.png",
                           "palette_trns.png",
                           "lossy.webp",
                           "lossless.webp",
                           "lossy_alpha.webp",
                           "animated.webp",
                           "plain.gif",
                           "animated.gif",
                           "rgb.bmp",
                           "rle8.bmp",
                           "raw.tiff",
                           "lzw.tiff",
                           "jpeg.tiff",
                           "deflate.tiff"}) {
    SCOPED_TRACE(name);
    const Bytes whole = picture(name);
    expect_refused(without_tail(whole, 128));
    expect_refused(without_tail(whole, whole.size() / 2));
    expect_refused(without_tail(whole, whole.size() - 20));
  }
}

// A JPEG decoder fills what is missing with gray and only warns.
TEST(TruncatedFiles, AJpegWithoutItsLastByteIsRefused) {
  expect_refused(without_tail(picture("plain.jpg"), 40));
  expect_refused(without_tail(picture("plain.jpg"), 1));
}

TEST(TruncatedFiles, APictureFollowedByOtherDataIsFine) {
  for (const char* name : {"plain.jpg", "rgb8.png", "lossy.webp"}) {
    Bytes longer = picture(name);
    longer.insert(longer.end(), 1000, std::byte{0xab});
    EXPECT_EQ(decode(longer), decode_picture(name)) << name;
  }
}

TEST(DamagedPng, ABadChecksumIsAnErrorInAnyChunk) {
  Bytes bytes = picture("rgb8.png");
  bytes[find(bytes, "IDAT") + 12] ^= std::byte{1};
  expect_refused(bytes);

  Bytes with_text = picture("exif_before.png");
  with_text[find(with_text, "eXIf") + 6] ^= std::byte{1};
  expect_refused(with_text);
}

TEST(DamagedPng, AFileWithoutItsEndChunkIsRefused) {
  expect_refused(without_tail(picture("rgb8.png"), 12));
}

std::string png_file(std::uint32_t side, const std::string& kind, const std::string& data) {
  return "\x89PNG\r\n\x1a\n" +
         png_chunk("IHDR", big_endian(side) + big_endian(side) + kind + std::string(3, '\0')) +
         png_chunk("IDAT", data) + png_chunk("IEND", {});
}

// B83: nothing inflates to more than 1032 times its size.
TEST(DamagedPng, PixelsThatTheDataCannotHoldAreRefusedBeforeTheyAreMade) {
  const std::string gray("\x08\0", 2);
  const Bytes claimed = to_bytes(png_file(8000, gray, std::string(1000, 'x')));
  expect_refused(claimed);
  MemoryBudget budget(std::uint64_t{1} << 30);
  DecodeContext context;
  context.budget = &budget;
  EXPECT_THROW(decode_image(claimed, {}, context), Error);
  EXPECT_EQ(budget.peak(), 0u);

  const std::string white = stored_deflate(std::string(std::size_t{29} * 28, '\0'), 4096);
  EXPECT_EQ(decode(to_bytes(png_file(28, gray, white))).width, 28u);
}

TEST(DamagedJpeg, ZeroPaddingBetweenMarkersIsOverlooked) {
  Bytes bytes = picture("plain.jpg");
  const Bytes padding(50, std::byte{0});
  bytes.insert(bytes.end() - 2, padding.begin(), padding.end());
  EXPECT_EQ(decode(bytes), decode_picture("plain.jpg"));
}

Bytes with_litter(std::size_t count, std::ptrdiff_t at) {
  Bytes bytes = picture("plain.jpg");
  bytes.insert(bytes.begin() + at, count, std::byte{0x37});
  return bytes;
}

TEST(DamagedJpeg, OtherBytesBehindTheFirstScanAreAnError) {
  const auto end = static_cast<std::ptrdiff_t>(picture("plain.jpg").size()) - 2;
  for (const std::size_t count : {20u, 50u}) expect_refused(with_litter(count, end));
}

// Real files have them; a table that is lost is longer.
TEST(DamagedJpeg, AFewBytesBetweenTheMarkersOfTheHeaderAreOverlooked) {
  const Bytes whole = picture("plain.jpg");
  const RgbImage expected = decode(whole);
  for (const std::string_view marker : {"\xff\xdb", "\xff\xc4", "\xff\xda"}) {
    const auto at = static_cast<std::ptrdiff_t>(find(whole, marker));
    ASSERT_GT(at, 2);
    EXPECT_EQ(decode(with_litter(5, at)), expected);
    EXPECT_EQ(decode(with_litter(20, at)), expected);
    expect_refused(with_litter(21, at));
  }
}

// The marker that tells the colours: without it they would be others.
TEST(DamagedJpeg, ALostAdobeMarkerIsAnError) {
  const Bytes whole = picture("ycck.jpg");
  const std::size_t adobe = find(whole, "\xff\xee");
  ASSERT_GT(adobe, 0u);
  // In real files it is not the first one.
  const std::array comment{std::byte{0xff}, std::byte{0xfe}, std::byte{0},
                           std::byte{4},    std::byte{'a'},  std::byte{'b'}};
  Bytes bytes = whole;
  bytes.insert(bytes.begin() + 2, comment.begin(), comment.end());
  EXPECT_EQ(decode(bytes), decode(whole));
  for (const std::size_t damaged : {adobe, adobe + 1}) {
    for (const std::byte value : {std::byte{0}, std::byte{1}}) {
      Bytes lost = bytes;
      lost[damaged + comment.size()] = value;
      expect_refused(lost);
    }
  }
}

TEST(DamagedJpeg, ALostTableIsAnError) {
  for (const std::string_view marker : {"\xff\xdb", "\xff\xc4", "\xff\xc0"}) {
    Bytes bytes = picture("plain.jpg");
    bytes[find(bytes, marker)] = std::byte{0x37};
    expect_refused(bytes);
  }
}

TEST(DamagedJpeg, DamageInTheScanIsAnErrorAndNotAGuess) {
  const Bytes whole = picture("plain.jpg");
  const std::size_t scan = find(whole, "\xff\xda") + 20;
  int refused = 0;
  for (std::size_t at = scan; at + 2 < whole.size(); at += 37) {
    Bytes bytes = whole;
    bytes[at] = std::byte{0xff};
    bytes[at + 1] = std::byte{0xd9};  // an early end of image
    const Failure failure = decode_failure(bytes);
    refused += failure.status() == 400 ? 1 : 0;
  }
  EXPECT_GT(refused, 10);
}

TEST(DamagedBmp, ARunBeyondTheLastRowIsAnError) {
  Bytes bytes = picture("rle8.bmp");
  ASSERT_EQ(to_text(bytes).substr(bytes.size() - 2), std::string("\0\1", 2)) << "end of picture";
  const auto five_more = {std::byte{0}, std::byte{0}, std::byte{5}, std::byte{1}};
  bytes.insert(bytes.end() - 2, five_more);
  expect_refused(bytes);
}

// Under the sanitizers this is where memory errors of ours and of the libraries would show.
TEST(MutatedFiles, AreDecodedOrRefusedAndNothingElse) {
  std::mt19937 random(20240607);
  const std::vector<std::string> names{
      "plain.jpg",         "progressive.jpg",     "cmyk.jpg",
      "orientation_6.jpg", "gray16.png",          "rgba8.png",
      "palette_trns.png",  "exif_before.png",     "rgb16_interlaced.png",
      "lossy.webp",        "lossless_alpha.webp", "animated_offset.webp",
      "exif.webp"};
  int decoded = 0;
  int refused = 0;
  for (int round = 0; round < 260; ++round) {
    Bytes bytes = picture(names[static_cast<std::size_t>(round) % names.size()]);
    const unsigned changes = 1 + random() % 8;
    for (unsigned i = 0; i < changes; ++i) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    if (random() % 4 == 0) bytes.resize(1 + random() % bytes.size());
    try {
      const RgbImage image = decode(bytes);
      EXPECT_EQ(image.pixels.size(), std::size_t{3} * image.width * image.height);
      ++decoded;
    } catch (const Error& error) {
      const int status = http_status(error.code());
      EXPECT_TRUE(status == 400 || status == 413 || status == 415) << status;
      expect_safe_for_clients(error.what());
      ++refused;
    }
  }
  EXPECT_EQ(decoded + refused, 260);
  EXPECT_GT(refused, 100);
}

TEST(MutatedFiles, PngDamageIsAlwaysSeenUnlessItIsBehindTheEnd) {
  const Bytes whole = picture("rgba8.png");
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Bytes bytes = whole;
    bytes[at] ^= std::byte{0x10};
    EXPECT_THROW(decode(bytes), Error) << at;
  }
}

}  // namespace
}  // namespace vitrove::test
