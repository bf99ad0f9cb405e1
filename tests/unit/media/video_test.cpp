// Clips: what is decoded, which frames are taken, what is refused.
#include <atomic>
#include <thread>

#include "clips.h"

namespace vitrove::test {
namespace {

constexpr std::array video_files{
    "h264.mp4", "h264.mkv", "h264.mov",  "fragmented.mp4", "bt709.mp4", "hevc.mp4",  "vp8.webm",
    "vp9.webm", "av1.webm", "mpeg4.avi", "mpeg4.mp4",      "mjpeg.avi", "exact.mov", "both.mp4"};

// The worst difference of a pixel in the middle of the picture.
int distance_from(const RgbImage& frame, const std::array<int, 3>& color) {
  const std::uint8_t* pixel = frame.row(frame.height / 2 + 4) + 3 * (frame.width / 2 + 4);
  int worst = 0;
  for (std::size_t c = 0; c < 3; ++c) worst = std::max(worst, std::abs(pixel[c] - color[c]));
  return worst;
}

TEST(Video, EveryContainerAndCodecGivesItsFramesInOrder) {
  for (const char* name : video_files) {
    SCOPED_TRACE(name);
    const VideoClip clip = decode_clip(name, all_frames()).clip;
    ASSERT_EQ(clip.frames.size(), clip_frames);
    for (int i = 0; i < static_cast<int>(clip_frames); ++i) {
      const auto at = static_cast<std::size_t>(i);
      EXPECT_EQ(clip.frames[at].width, 64u);
      EXPECT_EQ(clip.frames[at].height, 48u);
      EXPECT_LE(distance_from(clip.frames[at], frame_color(i)), 12) << i;
      EXPECT_NEAR(clip.timestamps[at], i / clip_fps, 0.002);
    }
    EXPECT_NEAR(clip.seconds, clip_frames / clip_fps, 0.02);
    EXPECT_NEAR(clip.sample_fps, clip_fps, 0.2);
  }
}

TEST(Video, LosslessFramesAreExact) {
  const VideoClip clip = decode_clip("exact.mov", all_frames()).clip;
  for (int i = 0; i < static_cast<int>(clip_frames); ++i) {
    const RgbImage& frame = clip.frames[static_cast<std::size_t>(i)];
    EXPECT_EQ(distance_from(frame, frame_color(i)), 0);
    EXPECT_EQ(frame.row(3)[9], 255);
  }
}

TEST(Video, AGifIsAClipToo) {
  const VideoClip clip = decode_clip("moving.gif", all_frames()).clip;
  ASSERT_EQ(clip.frames.size(), clip_frames);
  EXPECT_LE(distance_from(clip.frames[7], frame_color(7)), 45);  // three bits a channel
  EXPECT_NEAR(clip.timestamps[7], 0.7, 0.001);
}

TEST(Video, APhoneThatWasHeldUprightGivesUprightFrames) {
  const VideoClip turned = decode_clip("turned.mp4", all_frames()).clip;
  const VideoClip plain = decode_clip("h264.mp4", all_frames()).clip;
  ASSERT_EQ(turned.frames[0].width, 48u);
  ASSERT_EQ(turned.frames[0].height, 64u);
  // The white corner is at the upper left as stored; the tag asks for a quarter turn.
  const RgbImage& frame = turned.frames[5];
  const bool is_right = frame.row(4)[3 * 44] > 240;
  const bool is_left = frame.row(60)[3 * 4] > 240;
  EXPECT_NE(is_right, is_left);
  EXPECT_EQ(plain.frames.size(), turned.frames.size());
}

TEST(Video, TheSameFileGivesTheSameBytesEachTime) {
  const VideoClip first = decode_clip("h264.mp4").clip;
  const VideoClip second = decode_clip("h264.mp4").clip;
  EXPECT_EQ(first.frames, second.frames);
  EXPECT_EQ(first.timestamps, second.timestamps);
}

// The reference's own numbers, worked out by hand with its formula.
TEST(FrameSampling, FollowsTheReference) {
  using Places = std::vector<std::uint64_t>;
  EXPECT_EQ(sample_frames(12, 10, {}), (Places{0, 4, 7, 11}));  // 2.4 wanted, at least 4
  EXPECT_EQ(sample_frames(12, 10, {.fps = 5}), (Places{0, 2, 4, 7, 9, 11}));
  EXPECT_EQ(sample_frames(12, 10, {.fps = 100}).size(), 12u);
  EXPECT_EQ(sample_frames(13, 10, {.fps = 100}).size(), 12u);  // a multiple of two
  EXPECT_EQ(sample_frames(300, 30, {}).size(), 20u);
  EXPECT_EQ(sample_frames(300, 30, {.max_frames = 9}).size(), 8u);
  EXPECT_EQ(sample_frames(3000, 30, {.fps = 1, .min_frames = 121}).size(), 122u);
  EXPECT_EQ(sample_frames(5, 10, {.num_frames = 3}).size(), 4u);  // 1.5 pairs, halves to even
  EXPECT_EQ(sample_frames(1, 10, {}), (Places{0}));
  EXPECT_EQ(sample_frames(3, 10, {}), (Places{0, 2}));
  EXPECT_EQ(sample_frames(1'000'000, 30, {}).size(), 768u);
  EXPECT_EQ(sample_frames(1'000'000, 30, {}).back(), 999'999u);
}

TEST(FrameSampling, MoreFramesThanThereAreIsRefused) {
  EXPECT_EQ(failure_of([] { sample_frames(12, 10, {.num_frames = 14}); }).status(), 400);
  EXPECT_EQ(clip_failure(clip_file("h264.mp4"), {}, {.num_frames = 100}).status(), 400);
}

TEST(FrameSampling, AVariableRateIsSampledByFramesAndTimedTruly) {
  const VideoClip clip = decode_clip("variable.mkv", {.num_frames = 4}).clip;
  ASSERT_EQ(clip.timestamps.size(), 4u);
  EXPECT_NEAR(clip.timestamps[1], 0.4, 0.002);
  EXPECT_NEAR(clip.timestamps[3], 2.6, 0.002);
}

void expect_clear(const Failure& failure, int status) {
  EXPECT_EQ(failure.status(), status) << failure.message;
  expect_safe_for_clients(failure.message);
}

TEST(VideoLimits, AreNamed) {
  const Bytes bytes = clip_file("h264.mp4");
  const std::pair<VideoLimits, const char*> table[] = {
      {{.max_item_bytes = 100}, "bytes"},  {{.max_frame_pixels = 64 * 48 - 1}, "pixels"},
      {{.max_frames = 3}, "video frames"}, {{.max_source_frames = 11}, "frames"},
      {{.max_seconds = 1.0}, "seconds"},
  };
  for (const auto& [limits, word] : table) {
    const Failure failure = clip_failure(bytes, limits);
    expect_clear(failure, 413);
    EXPECT_NE(failure.message.find(word), std::string::npos) << failure.message;
    EXPECT_NE(failure.message.find("limit"), std::string::npos) << failure.message;
  }
  const VideoLimits just_enough{.max_item_bytes = bytes.size(),
                                .max_frame_pixels = 64 * 48,
                                .max_frames = 4,
                                .max_source_frames = clip_frames,
                                .max_seconds = 1.3};
  EXPECT_NO_THROW(decode_video(bytes, {}, just_enough));
}

// B13
TEST(DamagedVideo, ACutFileIsRefusedWhereverItWasCut) {
  for (const char* name : {"h264.mp4", "h264.mkv", "h264.mov", "vp9.webm", "mpeg4.avi", "mjpeg.avi",
                           "moving.gif", "fragmented.mp4"}) {
    const Bytes whole = clip_file(name);
    for (const double part : {0.02, 0.3, 0.6, 0.9}) {
      SCOPED_TRACE(std::string(name) + " " + std::to_string(part));
      Bytes bytes = whole;
      bytes.resize(static_cast<std::size_t>(static_cast<double>(whole.size()) * part));
      const Failure failure = clip_failure(bytes);
      EXPECT_TRUE(failure.status() == 400 || failure.status() == 415) << failure.message;
    }
  }
}

TEST(DamagedVideo, SoundAloneIsNoVideo) {
  const Failure failure = clip_failure(clip_file("aac.m4a"));
  expect_clear(failure, 415);
  EXPECT_NE(failure.message.find("no video"), std::string::npos) << failure.message;
  expect_clear(clip_failure(clip_file("plain.wav")), 415);
}

void put_u32(Bytes& bytes, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(value >> (24 - 8 * i));
}

TEST(DamagedVideo, AHeaderThatClaimsMillionsOfFramesIsRefusedBeforeTheyAreIndexed) {
  Bytes bytes = clip_file("h264.mp4");
  const std::size_t at = find(bytes, "stsz") + 4;
  put_u32(bytes, at + 4, 1);  // all of one size
  put_u32(bytes, at + 8, 50'000'000);
  expect_clear(clip_failure(bytes), 413);
  put_u32(bytes, at + 8, 1'000'000);
  EXPECT_EQ(clip_failure(bytes).status(), 400);
}

TEST(DamagedVideo, AFileWithoutItsIndexIsRefused) {
  Bytes bytes = clip_file("h264.mp4");
  bytes[find(bytes, "moov")] = std::byte{'x'};
  expect_clear(clip_failure(bytes), 400);
}

// Whatever a container refers to outside itself is not opened.
TEST(VideoReferences, StayClosed) {
  const std::string playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/passwd\n";
  EXPECT_EQ(clip_failure(to_bytes(playlist)).status(), 415);
}

TEST(VideoBudget, CoversFramesDecoderAndCaller) {
  MemoryBudget budget(std::uint64_t{64} << 20);
  MediaShape seen;
  DecodeContext context{.budget = &budget};
  context.bytes_beside = [&](const MediaShape& shape) {
    seen = shape;
    return std::uint64_t{1000};
  };
  {
    const DecodedVideo decoded = decode_video(clip_file("turned.mp4"), {}, {}, context);
    EXPECT_EQ(seen.width, 48u);
    EXPECT_EQ(seen.height, 64u);
    EXPECT_EQ(seen.frames, 4u);
    EXPECT_EQ(budget.used(), 4u * 3 * 64 * 48 + 1000);
    EXPECT_GE(budget.peak(), 20u * 64 * 48);
  }
  EXPECT_EQ(budget.used(), 0u);
  MemoryBudget small(10'000);
  expect_clear(failure_of([&] { decode_video(clip_file("h264.mp4"), {}, {}, {.budget = &small}); }),
               413);
}

// A round costs a wait for memory, and decodes in vain.
TEST(VideoBudget, IsAskedOnceForWhatEachDecoderMakes) {
  MemoryBudget budget(std::uint64_t{1} << 30);
  for (const char* name : {"moving.gif", "h264.mp4", "vp9.webm"}) {
    int asked = 0;
    DecodeContext context{.budget = &budget};
    context.bytes_beside = [&](const MediaShape&) { return ++asked, std::uint64_t{0}; };
    decode_video(clip_file(name), all_frames(), {}, context);
    EXPECT_EQ(asked, 1) << name;
  }
}

// The header of such an MP4 does not tell the size of its frames; a decoder has to be asked, which
// takes memory of its own before anything is known.
TEST(VideoBudget, CoversADecoderThatIsAskedForTheSizeOfFrames) {
  MemoryBudget budget(std::uint64_t{64} << 20);
  int asked = 0;
  DecodeContext context{.budget = &budget};
  context.bytes_beside = [&](const MediaShape&) { return ++asked, std::uint64_t{0}; };
  {
    const MemoryLease all = budget.acquire(budget.capacity(), std::chrono::steady_clock::now());
    context.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    EXPECT_EQ(failure_of([&] { decode_video(clip_file("mpeg4.mp4"), {}, {}, context); }).status(),
              503);
    EXPECT_EQ(asked, 0) << "it was opened without";
  }
  context.deadline = std::chrono::steady_clock::time_point::max();
  EXPECT_NO_THROW(decode_video(clip_file("mpeg4.mp4"), {}, {}, context));
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(budget.used(), 0U);
}

TEST(VideoTime, AnOverdueOrStoppedDecodeEndsWithAnError) {
  const auto past = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  EXPECT_EQ(
      failure_of([&] { decode_video(clip_file("h264.mp4"), {}, {}, {.deadline = past}); }).code,
      ErrorCode::deadline_exceeded);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(failure_of([&] {
              decode_video(clip_file("h264.mp4"), {}, {}, {.cancel = stop.get_token()});
            }).code,
            ErrorCode::cancelled);
}

TEST(Video, ManyAtOnceDoNotDisturbEachOther) {
  const VideoClip expected = decode_clip("h264.mp4").clip;
  std::atomic<int> equal = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back(
          [&] { equal += decode_clip("h264.mp4").clip.frames == expected.frames ? 1 : 0; });
    }
  }
  EXPECT_EQ(equal, 8);
}

}  // namespace
}  // namespace vitrove::test
