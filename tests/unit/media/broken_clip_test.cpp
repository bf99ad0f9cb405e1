// Damage that FFmpeg steps over, and at most writes a line of into its log (field cases B06, B13).
#include <atomic>
#include <bit>
#include <functional>
#include <thread>

#include "broken_clips.h"

namespace vitrove::test {
namespace {

Bytes hevc_without_key_frame() {
  const Bytes whole = clip_file("hevc.mp4");
  return with_bytes(whole, find(whole, "mdat") + 8, "\x60");  // a kind of unit that nobody knows
}

Bytes mpeg4_without_first_picture() {
  const Bytes whole = clip_file("mpeg4.avi");
  return with_bytes(whole, find(whole, "00dc", find(whole, "movi")), "JUNK");
}

Bytes ogg_with_lost_page() {
  Bytes bytes = clip_file("pages.ogg");
  std::size_t at = 0;
  for (int page = 0; page < 4; ++page) at = find(bytes, "OggS", at + 1);
  bytes.at(at + 40) ^= std::byte{1};
  return bytes;
}

struct Broken {
  const char* name;
  Modality modality;
  std::function<Bytes()> make;
};

const std::string_view nothing("\0", 1);
constexpr std::string_view padding = "\xec";

std::vector<Broken> broken_clips() {
  return {
      {"gif, first picture", Modality::video, [] { return gif_with_bad_pixels(0); }},
      {"gif, in the middle", Modality::video, [] { return gif_with_bad_pixels(6); }},
      {"hevc without a key frame", Modality::video, hevc_without_key_frame},
      {"mpeg-4 without its first picture", Modality::video, mpeg4_without_first_picture},
      {"h.264 that begins amid a group", Modality::video,
       [] { return with_block_id("h264.mkv", 0, padding); }},
      {"vp9 with a block that is none", Modality::video,
       [] { return with_block_id("vp9.webm", 5, nothing); }},
      {"av1 with a unit of no known kind", Modality::video,
       [] { return with_packet("av1.webm", 4, "\x4a"); }},
      {"opus with a block that is none", Modality::audio,
       [] { return with_block_id("opus.webm", 9, nothing); }},
      {"opus with a packet of no frames", Modality::audio,
       [] { return with_packet("opus.webm", 9, std::string_view("\xff\0", 2)); }},
      {"ogg with a lost page", Modality::audio, ogg_with_lost_page},
  };
}

Failure failure_as(const Broken& broken) {
  const Bytes bytes = broken.make();
  return broken.modality == Modality::video ? clip_failure(bytes) : sound_failure(bytes);
}

TEST(BrokenClips, AreRefusedThoughTheDecoderGoesOn) {
  for (const Broken& broken : broken_clips()) {
    SCOPED_TRACE(broken.name);
    const Failure failure = failure_as(broken);
    EXPECT_EQ(failure.status(), 400) << failure.message;
    EXPECT_NE(failure.message.find("damaged"), std::string::npos) << failure.message;
    expect_safe_for_clients(failure.message);
  }
}

// Cut where no key frame was: MP4 says which pictures are only there for others, and HEVC leaves
// out those that cannot be decoded.
TEST(BrokenClips, AreNotThoseThatWereCutAsTheirContainerHasIt) {
  for (const char* name : {"trimmed.mp4", "trimmed.mkv"}) {
    SCOPED_TRACE(name);
    const VideoClip clip = decode_clip(name, {.fps = 100}).clip;
    EXPECT_GE(clip.frames.size(), 4u);
    EXPECT_EQ(clip.timestamps[0], 0.0);
  }
}

// What is logged for one says nothing of another that is decoded at the same time.
TEST(BrokenClips, AreNoFaultOfOthersThatAreDecodedBesideThem) {
  const Bytes good = clip_file("moving.gif");
  const Bytes bad = gif_with_bad_pixels(6);
  std::atomic<int> decoded = 0;
  std::atomic<int> refused = 0;
  const auto work = [&](const Bytes& bytes) {
    for (int i = 0; i < 20; ++i) {
      try {
        decode_video(bytes, {}, {});
        ++decoded;
      } catch (const Error&) {
        ++refused;
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] { work(good); });
      threads.emplace_back([&] { work(bad); });
    }
  }
  EXPECT_EQ(decoded, 60);
  EXPECT_EQ(refused, 60);
}

}  // namespace
}  // namespace vitrove::test
