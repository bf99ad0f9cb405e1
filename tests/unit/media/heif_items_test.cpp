// What AVIF and HEIC files say about themselves, and what stands inside them.
#include "media/heif_items.h"

#include "media/heif_library.h"
#include "support.h"

namespace vitrove::test {
namespace {

constexpr std::uint64_t pixels = 48 * 32;
constexpr std::uint64_t pixels_inside = 8192 * 4096;

TEST(HeifItems, TellTheSizeOfTheCodedPicture) {
  for (const char* name : {"upright.heic", "turned.heic", "upright.avif", "mirrored.avif"}) {
    const HeifClaims claims = heif_claims(picture(name));
    EXPECT_EQ(claims.largest_pixels, pixels) << name;
    EXPECT_EQ(claims.work_pixels, pixels) << name;
    EXPECT_LT(claims.item_bytes, picture(name).size());
  }
  for (const char* name : {"larger_inside.heic", "larger_inside.avif"}) {
    EXPECT_EQ(heif_claims(picture(name)).largest_pixels, pixels_inside) << name;
  }
}

TEST(HeifItems, NothingIsClaimedByWhatIsNoContainer) {
  EXPECT_EQ(heif_claims({}).work_pixels, 0u);
  EXPECT_EQ(heif_claims(picture("plain.jpg")).work_pixels, 0u);
}

std::string box(const std::string& kind, const std::string& body) {
  return big_endian(static_cast<std::uint32_t>(body.size() + 8)) + kind + body;
}

std::string u16(unsigned value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value & 0xff)};
}

// The file with one box more at the end of its meta box, which nothing that was there before minds.
Bytes with_references(const std::string& name, const std::string& references) {
  std::string file = to_text(picture(name));
  const std::string added = box("iref", std::string(4, '\0') + references);
  const std::size_t meta = file.find("meta") - 4;
  std::uint32_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(file[meta + i]);
  file.replace(meta, 4, big_endian(size + static_cast<std::uint32_t>(added.size())));
  return to_bytes(file.insert(meta + size, added));
}

std::string made_of(unsigned user, const std::vector<unsigned>& items, const char* kind = "dimg") {
  std::string body = u16(user) + u16(static_cast<unsigned>(items.size()));
  for (const unsigned item : items) body += u16(item);
  return box(kind, body);
}

// With numbers of no bytes, 65535 extents take six.
TEST(HeifItems, EntriesThatTakeNoBytesAreNotAllKept) {
  std::string locations = std::string(4, '\0') + u16(0) + u16(60'000);
  for (unsigned item = 0; item < 60'000; ++item) locations += u16(item) + u16(0) + u16(65'535);
  const std::string file =
      box("ftyp", "avif") + box("meta", std::string(4, '\0') + box("iloc", locations));
  EXPECT_GT(heif_claims(to_bytes(file)).work_pixels, std::uint64_t{1} << 60) << "refused";
}

// The item moves when the box is put in, so its data is elsewhere; the configuration still tells.
TEST(HeifItems, ATileCountsAsOftenAsItIsUsed) {
  const Bytes bytes = with_references("upright.heic", made_of(2, std::vector<unsigned>(1000, 1)));
  EXPECT_EQ(heif_claims(bytes).work_pixels, 1000 * pixels);
  const Bytes nested = with_references(
      "upright.heic", made_of(2, {1, 1, 1}) + made_of(3, {2, 2}) + made_of(4, {3, 3, 1}));
  EXPECT_EQ(heif_claims(nested).work_pixels, (2 * 2 * 3 + 1) * pixels);
}

TEST(HeifItems, AnAuxiliaryPictureCountsForItsOwner) {
  const Bytes bytes = with_references("upright.heic", made_of(1, {2}, "auxl"));
  EXPECT_EQ(heif_claims(bytes).work_pixels, pixels);
}

TEST(HeifItems, PicturesThatAreMadeOfThemselvesAreBeyondAllLimits) {
  constexpr std::uint64_t beyond = std::uint64_t{1} << 60;
  const auto circle = made_of(2, {1, 3}) + made_of(3, std::vector<unsigned>(5000, 2));
  EXPECT_GT(heif_claims(with_references("upright.heic", circle)).work_pixels, beyond);
  std::string chain;
  for (unsigned i = 100; i > 1; --i) chain += made_of(i, {i - 1, i - 1});
  EXPECT_GT(heif_claims(with_references("upright.heic", chain)).work_pixels, beyond);
}

// B83: in a file that calls itself small, of 526 bytes in one case.
TEST(HeifClaims, ALargePictureInsideIsRefusedBeforeItIsDecoded) {
  ASSERT_NE(heif_library(), nullptr) << "scripts/apt-packages.txt names it";
  for (const char* name : {"larger_inside.heic", "larger_inside.avif"}) {
    MemoryBudget budget(std::uint64_t{1} << 30);
    const ImageLimits limits{.max_pixels = 1'000'000};
    const DecodeContext context{.budget = &budget};
    const Failure failure = failure_of([&] { decode_image(picture(name), limits, context); });
    EXPECT_EQ(failure.status(), 413) << name;
    EXPECT_NE(failure.message.find("limit of 1000000 pixels"), std::string::npos)
        << failure.message;
    EXPECT_EQ(budget.peak(), 0u);
  }
}

TEST(HeifClaims, ATileThatIsUsedTooOftenIsRefused) {
  ASSERT_NE(heif_library(), nullptr) << "scripts/apt-packages.txt names it";
  const Bytes bytes = with_references("upright.heic", made_of(2, std::vector<unsigned>(60'000, 1)));
  const Failure failure = decode_failure(bytes, {.max_pixels = 10'000'000});
  EXPECT_EQ(failure.status(), 413) << failure.message;
}

}  // namespace
}  // namespace vitrove::test
