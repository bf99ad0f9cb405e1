// Limits are checked from the header, before memory is taken (field case B83).
#include <atomic>
#include <thread>

#include <jpeglib.h>

#include "support.h"

namespace vitrove::test {
namespace {

void put_u32(Bytes& bytes, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(value >> (24 - 8 * i));
}

// rgb8.png with another size in its header, and the checksum that belongs to it.
Bytes png_of_size(std::uint32_t width, std::uint32_t height) {
  Bytes bytes = picture("rgb8.png");
  put_u32(bytes, 16, width);
  put_u32(bytes, 20, height);
  const auto* header = reinterpret_cast<const Bytef*>(bytes.data() + 12);
  put_u32(bytes, 29, static_cast<std::uint32_t>(crc32_z(0, header, 17)));
  return bytes;
}

Bytes jpeg_of_size(std::uint16_t width, std::uint16_t height) {
  Bytes bytes = picture("plain.jpg");
  const std::size_t frame = to_text(bytes).find("\xff\xc0");
  bytes[frame + 5] = static_cast<std::byte>(height >> 8);
  bytes[frame + 6] = static_cast<std::byte>(height);
  bytes[frame + 7] = static_cast<std::byte>(width >> 8);
  bytes[frame + 8] = static_cast<std::byte>(width);
  return bytes;
}

// lossless.webp with 14-bit sizes in its VP8L header.
Bytes webp_of_size(std::uint32_t width, std::uint32_t height) {
  Bytes bytes = picture("lossless.webp");
  const std::size_t at = to_text(bytes).find("VP8L") + 9;
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < 4; ++i)
    bits |= std::to_integer<std::uint32_t>(bytes[at + i]) << 8 * i;
  bits = (bits & 0xf0000000) | (width - 1) | (height - 1) << 14;
  for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(bits >> 8 * i);
  return bytes;
}

TEST(PixelLimit, HugePicturesAreRefusedFromTheirHeader) {
  for (const Bytes& bomb :
       {png_of_size(30'000, 30'000), png_of_size(0x7fffffff, 0x7fffffff),
        png_of_size(65'535, 65'535), jpeg_of_size(65'500, 65'500), webp_of_size(16'000, 16'000)}) {
    MemoryBudget budget(std::uint64_t{1} << 20);
    const Failure failure = failure_of([&] { decode_image(bomb, {}, {.budget = &budget}); });
    EXPECT_EQ(failure.status(), 413);
    EXPECT_NE(failure.message.find("limit"), std::string::npos) << failure.message;
    EXPECT_EQ(budget.peak(), 0u);
    expect_safe_for_clients(failure.message);
  }
}

TEST(PixelLimit, AdmitsExactlyTheLimit) {
  const RgbImage image = decode_picture("rgb8.png");
  ImageLimits limits;
  limits.max_pixels = std::uint64_t{image.width} * image.height;
  EXPECT_EQ(decode(picture("rgb8.png"), limits), image);
  limits.max_pixels -= 1;
  EXPECT_EQ(decode_failure(picture("rgb8.png"), limits).status(), 413);
}

TEST(PixelLimit, BoundsASingleSide) {
  ImageLimits limits;
  limits.max_side = 100;
  EXPECT_EQ(decode(picture("size_100x1.png"), limits).width, 100u);
  limits.max_side = 99;
  EXPECT_EQ(decode_failure(picture("size_100x1.png"), limits).status(), 413);
}

TEST(ByteLimit, AdmitsExactlyTheLimit) {
  const Bytes bytes = picture("plain.jpg");
  ImageLimits limits;
  limits.max_item_bytes = bytes.size();
  EXPECT_NO_THROW(decode(bytes, limits));
  limits.max_item_bytes = bytes.size() - 1;
  EXPECT_EQ(decode_failure(bytes, limits).status(), 413);
}

TEST(DegenerateSizes, ZeroIsRefusedAndOneWorks) {
  EXPECT_EQ(decode_failure(png_of_size(0, 10)).status(), 400);
  EXPECT_EQ(decode_failure(jpeg_of_size(0, 10)).status(), 400);
  EXPECT_EQ(decode_picture("size_1x1.png").pixels.size(), 3u);
  EXPECT_EQ(decode_picture("one_pixel.jpg").pixels.size(), 3u);
  EXPECT_EQ(decode_picture("size_1x100.png").height, 100u);
}

// A size that does not fit the data is damage, found without decoding more than there is.
TEST(DegenerateSizes, AHeaderThatPromisesMoreThanTheDataHoldsIsRefused) {
  EXPECT_EQ(decode_failure(png_of_size(2'000, 2'000)).status(), 400);
  EXPECT_EQ(decode_failure(jpeg_of_size(2'000, 2'000)).status(), 400);
  EXPECT_EQ(decode_failure(webp_of_size(2'000, 2'000)).status(), 400);
}

// A progressive JPEG with as many scans as asked for, every further one refining nothing new.
Bytes progressive_jpeg(int scans) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &out, &size);
  info.image_width = info.image_height = 16;
  info.input_components = 1;
  info.in_color_space = JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  std::vector<jpeg_scan_info> script{{1, {0}, 0, 0, 0, 0}};
  for (int band = 1; static_cast<int>(script.size()) < scans; ++band) {
    script.push_back({1, {0}, band, band, 0, 0});
  }
  info.scan_info = script.data();
  info.num_scans = static_cast<int>(script.size());
  jpeg_start_compress(&info, TRUE);
  std::array<JSAMPLE, 16> row{};
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<JSAMPLE>(i * 16);
  JSAMPROW rows[] = {row.data()};
  while (info.next_scanline < info.image_height) jpeg_write_scanlines(&info, rows, 1);
  jpeg_finish_compress(&info);
  const auto* data = reinterpret_cast<const std::byte*>(out);
  Bytes bytes(data, data + size);
  jpeg_destroy_compress(&info);
  std::free(out);
  return bytes;
}

TEST(ScanLimit, MoreProgressiveScansThanAllowedAreRefused) {
  ImageLimits limits;
  limits.max_jpeg_scans = 20;
  EXPECT_EQ(decode(progressive_jpeg(20), limits).width, 16u);
  EXPECT_EQ(decode_failure(progressive_jpeg(21), limits).status(), 413);
}

TEST(TextBombs, AreNeverInflated) {
  MemoryBudget budget(std::uint64_t{1} << 20);
  const DecodedImage decoded = decode_image(picture("text_bomb.png"), {}, {.budget = &budget});
  EXPECT_EQ(decoded.image.width, 24u);
}

TEST(Time, AnOverdueOrStoppedDecodeEndsWithAnError) {
  const auto past = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  EXPECT_EQ(failure_of([&] { decode_image(picture("plain.jpg"), {}, {.deadline = past}); }).code,
            ErrorCode::deadline_exceeded);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(failure_of([&] {
              decode_image(picture("plain.jpg"), {}, {.cancel = stop.get_token()});
            }).code,
            ErrorCode::cancelled);
}

TEST(DecodeBudget, TheLeaseOfAPictureLastsAsLongAsThePicture) {
  MemoryBudget budget(std::uint64_t{64} << 20);
  {
    const DecodedImage decoded =
        decode_image(picture("orientation_6.jpg"), {}, {.budget = &budget});
    EXPECT_EQ(budget.used(), decoded.image.pixels.size());
    EXPECT_GE(budget.peak(), 2 * decoded.image.pixels.size());
  }
  EXPECT_EQ(budget.used(), 0u);
}

// Field case B83: what is made of a small picture may be large, and is asked for beforehand.
TEST(Budget, CoversWhatTheCallerWillTakeBesideThePicture) {
  MemoryBudget budget(std::uint64_t{64} << 20);
  MediaShape seen;
  DecodeContext context{.budget = &budget};
  context.bytes_beside = [&](const MediaShape& shape) {
    seen = shape;
    return std::uint64_t{10} << 20;
  };
  const DecodedImage decoded = decode_image(picture("orientation_6.jpg"), {}, context);
  EXPECT_EQ(seen.width, decoded.image.width);
  EXPECT_EQ(seen.height, decoded.image.height);
  EXPECT_EQ(decoded.lease.bytes(), decoded.image.pixels.size() + (10 << 20));
  EXPECT_EQ(budget.used(), decoded.lease.bytes());

  context.bytes_beside = [&](const MediaShape&) { return budget.capacity(); };
  EXPECT_EQ(failure_of([&] { decode_image(picture("plain.jpg"), {}, context); }).status(), 413);
}

TEST(DecodeBudget, APictureBeyondTheWholeBudgetIsTooLarge) {
  MemoryBudget budget(100);
  EXPECT_EQ(
      failure_of([&] { decode_image(picture("plain.jpg"), {}, {.budget = &budget}); }).status(),
      413);
  EXPECT_EQ(budget.used(), 0u);
}

TEST(DecodeBudget, ADamagedPictureGivesItsLeaseBack) {
  MemoryBudget budget(std::uint64_t{64} << 20);
  Bytes bytes = picture("plain.jpg");
  bytes.resize(bytes.size() / 2);
  EXPECT_THROW(decode_image(bytes, {}, {.budget = &budget}), Error);
  EXPECT_EQ(budget.used(), 0u);
}

TEST(DecodeBudget, ManyAtOnceStayWithinIt) {
  const Bytes bytes = picture("plain.jpg");
  MemoryBudget budget(40'000);  // fewer than four of them
  std::atomic<int> decoded = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 10; ++round) {
          const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
          decode_image(bytes, {}, {.budget = &budget, .deadline = deadline});
          ++decoded;
        }
      });
    }
  }
  EXPECT_EQ(decoded, 80);
  EXPECT_LE(budget.peak(), budget.capacity());
  EXPECT_EQ(budget.used(), 0u);
}

}  // namespace
}  // namespace vitrove::test
