// What decoders are held to before they take memory or time that nobody can take back (B83).
#include <cstring>

#include "clips.h"
#include "media/downmix.h"
#include "media/ffmpeg_decoder.h"
#include "media/rgb_converter.h"

namespace vitrove::test {
namespace {

Bytes with_u16(Bytes bytes, std::size_t at, std::uint32_t value) {
  bytes.at(at) = static_cast<std::byte>(value >> 8);
  bytes.at(at + 1) = static_cast<std::byte>(value);
  return bytes;
}

// The container says 16 x 16, and the stream inside 640 x 640.
TEST(ClipBounds, AFrameThatIsLargerThanTheContainerSaysIsNotMadeRoomFor) {
  Bytes bytes = clip_file("large.mp4");
  const std::size_t entry = find(bytes, "avc1", find(bytes, "stsd"));
  bytes = with_u16(with_u16(std::move(bytes), entry + 28, 16), entry + 30, 16);
  const Failure failure = clip_failure(bytes);
  EXPECT_EQ(failure.status(), 400) << failure.message;
  EXPECT_EQ(failure.detail.find("several sizes"), std::string::npos)
      << "a frame was decoded before its size was looked at";
  EXPECT_NO_THROW(decode_clip("large.mp4"));
}

TEST(ClipBounds, DeepPixelsAreReservedAsWhatTheyTake) {
  MemoryBudget budget(std::uint64_t{64} << 20);
  decode_video(clip_file("deep.mp4"), {}, {}, {.budget = &budget});
  EXPECT_GE(budget.peak(), 20u * 6 * 64 * 48) << "three planes of ten bits";
}

TEST(ClipBounds, ADecoderTellsThatPixelsNeedMoreThanTheirRoom) {
  const Bytes bytes = clip_file("deep.mp4");
  const ImageLimits limits;
  const DecodeContext context;
  const DecodeJob job(limits, context);
  FfmpegSource source(bytes, MediaFormat::mp4, AVMEDIA_TYPE_VIDEO, job);
  FfmpegDecoder decoder(source, {.pixels = 1 << 20, .pixel_bytes = 3});
  EXPECT_EQ(decoder.next(), nullptr);
  EXPECT_EQ(decoder.missing_pixel_bytes(), 6u);
}

TEST(ClipBounds, FramesOfAnotherRangeOrMatrixAreNotConvertedAsTheFirst) {
  const auto frame_of = [](AVColorRange range, AVColorSpace matrix) {
    FfmpegFrame frame = make_frame();
    frame->width = 16;
    frame->height = 16;
    frame->format = AV_PIX_FMT_YUV420P;
    frame->color_range = range;
    frame->colorspace = matrix;
    return frame;
  };
  const auto first = frame_of(AVCOL_RANGE_MPEG, AVCOL_SPC_SMPTE170M);
  const RgbConverter converter(*first);
  EXPECT_TRUE(converter.takes(*first));
  EXPECT_FALSE(converter.takes(*frame_of(AVCOL_RANGE_JPEG, AVCOL_SPC_SMPTE170M)));
  EXPECT_FALSE(converter.takes(*frame_of(AVCOL_RANGE_MPEG, AVCOL_SPC_BT709)));
}

// The cookie of an ALAC says how many samples a packet gives.
TEST(SoundBounds, APacketOfMillionsOfSamplesIsNotMadeRoomFor) {
  Bytes bytes = clip_file("alac.m4a");
  const std::size_t entry = find(bytes, "alac", find(bytes, "stsd"));
  const std::size_t cookie = find(bytes, "alac", entry + 4);
  bytes = with_u16(std::move(bytes), cookie + 8, 0x40);  // four million
  const Failure failure = sound_failure(bytes);
  EXPECT_EQ(failure.status(), 400) << failure.message;
  EXPECT_NE(failure.detail.find("max_samples"), std::string::npos) << failure.detail;
}

TEST(SoundBounds, SamplesOfAnUnknownKindAreAnotherErrorThanBadOnes) {
  const FfmpegFrame frame = make_frame();
  frame->format = AV_SAMPLE_FMT_S64;
  frame->nb_samples = 4;
  av_channel_layout_default(&frame->ch_layout, 1);
  std::vector<float> mono;
  EXPECT_EQ(failure_of([&] { downmix(*frame, mono); }).status(), 415);
}

// A TIFF whose only strip is this JPEG.
Bytes tiff_around(const Bytes& jpeg, std::uint16_t width, std::uint16_t height) {
  const auto u16 = [](std::uint32_t value) {
    return std::string{static_cast<char>(value), static_cast<char>(value >> 8)};
  };
  const auto u32 = [&](std::uint32_t value) { return u16(value & 0xffff) + u16(value >> 16); };
  const auto field = [&](std::uint32_t tag, std::uint32_t kind, std::uint32_t count,
                         std::uint32_t value) {
    return u16(tag) + u16(kind) + u32(count) + u32(value);
  };
  constexpr std::uint32_t number = 3;
  constexpr std::uint32_t long_number = 4;
  const auto size = static_cast<std::uint32_t>(jpeg.size());
  const std::string head =
      std::string("II*\0", 4) + u32(16 + size + size % 2) + u16(8) + u16(8) + u16(8) + u16(0);
  return to_bytes(head + to_text(jpeg) + std::string(size % 2, '\0') + u16(9) +
                  field(256, number, 1, width) + field(257, number, 1, height) +
                  field(258, number, 3, 8) + field(259, number, 1, 7) + field(262, number, 1, 6) +
                  field(273, long_number, 1, 16) + field(277, number, 1, 3) +
                  field(278, number, 1, height) + field(279, long_number, 1, size) + u32(0));
}

Bytes tiff_with(const Bytes& jpeg) {
  const RgbImage plain = decode(jpeg);
  return tiff_around(jpeg, static_cast<std::uint16_t>(plain.width),
                     static_cast<std::uint16_t>(plain.height));
}

Failure tiff_failure(const char* name, const ImageLimits& limits) {
  return decode_failure(tiff_with(picture(name)), limits);
}

// The JPEG with a segment of this marker and content before all others.
Bytes with_segment(const Bytes& jpeg, char marker, const std::string& content) {
  const std::size_t length = content.size() + 2;
  const std::string head{'\xff', marker, static_cast<char>(length >> 8), static_cast<char>(length)};
  const std::string text = to_text(jpeg);
  return to_bytes(text.substr(0, 2) + head + content + text.substr(2));
}

// Its scans cannot be interrupted, so they are counted before.
TEST(TiffBounds, AJpegInsideIsHeldToTheScansOfAJpeg) {
  const Failure failure = tiff_failure("plain.jpg", {.max_jpeg_scans = 0});
  EXPECT_EQ(failure.status(), 413) << failure.message;
  EXPECT_NE(failure.message.find("scans"), std::string::npos) << failure.message;
}

TEST(TiffBounds, AProgressiveJpegInsideIsRefusedBeforeItIsDecoded) {
  const Failure failure = tiff_failure("progressive.jpg", {});
  EXPECT_EQ(failure.status(), 415) << failure.message;
  EXPECT_NE(failure.message.find("progressive"), std::string::npos) << failure.message;
}

// A thumbnail, a profile, a comment: what they hold is no marker.
TEST(TiffBounds, WhatSegmentsOfAJpegInsideHoldIsNotCounted) {
  using namespace std::string_literals;
  constexpr char application = '\xe1';
  constexpr char comment = '\xfe';
  const Bytes plain = picture("plain.jpg");
  const std::string thumbnail = to_text(picture("progressive.jpg")).substr(0, 60'000);
  const std::string markers = "\xff\xc2\0\x0b\xff\xca\xff\xda\xff\xda\xff"s;
  const RgbImage expected = decode(tiff_with(plain));
  for (const Bytes& jpeg :
       {with_segment(plain, application, thumbnail), with_segment(plain, comment, markers),
        with_segment(with_segment(plain, comment, markers), application, markers)}) {
    EXPECT_EQ(decode(tiff_with(jpeg), {.max_jpeg_scans = 1}), expected);
  }
}

// Behind such a segment it is found all the same.
TEST(TiffBounds, AProgressiveJpegOfTooManyScansIsNotHiddenBySegments) {
  const Bytes jpeg = with_segment(picture("progressive.jpg"), '\xfe', "\xff\xda");
  const Failure failure = decode_failure(tiff_with(jpeg), {.max_jpeg_scans = 1});
  EXPECT_EQ(failure.status(), 415) << failure.message;
  EXPECT_NE(failure.message.find("progressive"), std::string::npos) << failure.message;
}

}  // namespace
}  // namespace vitrove::test
