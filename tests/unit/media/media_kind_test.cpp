// As what a container can be taken, by its list of streams.
#include "media/media_kind.h"

#include <map>

#include "clips.h"

namespace vitrove::test {
namespace {

using namespace std::string_literals;

struct Kind {
  std::optional<Modality> own;
  bool can_be_clip = false;
  bool can_be_sound = false;
  bool operator==(const Kind&) const = default;
};

Kind kind_of(std::span<const std::byte> file) {
  const MediaKind kind(file);
  return {kind.own(), kind.can_be(Modality::video), kind.can_be(Modality::audio)};
}

constexpr Kind clip_alone{Modality::video, true, false};
constexpr Kind sound_alone{Modality::audio, false, true};
constexpr Kind clip_with_sound{Modality::video, true, true};
constexpr Kind untold = clip_with_sound;  // by its format

TEST(MediaKind, OfAContainerIsToldByItsStreams) {
  const std::map<std::string, Kind> table{
      {"h264.mp4", clip_alone},      {"fragmented.mp4", clip_alone}, {"turned.mp4", clip_alone},
      {"exact.mov", clip_alone},     {"h264.mkv", clip_alone},       {"trimmed.mkv", clip_alone},
      {"vp9.webm", clip_alone},      {"both.mp4", clip_with_sound},  {"both.mov", clip_with_sound},
      {"both.mkv", clip_with_sound}, {"both.webm", clip_with_sound}, {"aac.m4a", sound_alone},
      {"alac.m4a", sound_alone},     {"pcm.mov", sound_alone},       {"flac.mkv", sound_alone},
      {"opus.webm", sound_alone},    {"cover.m4a", sound_alone},     {"cover.mkv", sound_alone}};
  for (const auto& [name, kind] : table) {
    EXPECT_EQ(kind_of(clip_file(name)), kind) << name;
  }
}

// What it says is what the decoders find.
TEST(MediaKind, AgreesWithTheDecoders) {
  const auto folder = source_dir() / "tests" / "data" / "clips";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const Bytes file = read_file(entry.path());
    const MediaFormat format = sniff(file);
    if (!is_decodable(format, Modality::video) || !is_decodable(format, Modality::audio)) continue;
    SCOPED_TRACE(entry.path().filename());
    const auto decodes = [](auto decode) {
      try {
        decode();
        return true;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unsupported_format) << error.what();
        return false;
      }
    };
    const MediaKind kind(file);
    EXPECT_EQ(kind.can_be(Modality::video), decodes([&] { decode_video(file, {}, {}); }));
    EXPECT_EQ(kind.can_be(Modality::audio), decodes([&] { decode_audio(file, 16'000, {}); }));
    ++count;
  }
  EXPECT_GT(count, 20);
}

TEST(MediaKind, OfOtherFormatsIsThatOfTheFormat) {
  EXPECT_EQ(MediaKind(picture("plain.jpg")).own(), Modality::image);
  EXPECT_EQ(kind_of(clip_file("plain.wav")), sound_alone);
  EXPECT_EQ(kind_of(clip_file("mpeg4.avi")), clip_alone);
  const MediaKind gif(clip_file("moving.gif"));
  EXPECT_EQ(gif.own(), Modality::image);
  EXPECT_TRUE(gif.can_be(Modality::image) && gif.can_be(Modality::video));
  EXPECT_EQ(kind_of({}), (Kind{}));
}

// --- made by hand --------------------------------------------------------------------------------

std::string big_endian(std::uint64_t value, unsigned bytes) {
  std::string text;
  for (unsigned i = bytes; i-- > 0;) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string box(const std::string& type, const std::string& body) {
  return big_endian(8 + body.size(), 4) + type + body;
}

std::string track(unsigned id, const std::string& handler, const std::string& more = {}) {
  const std::string head = box("tkhd", std::string(12, '\0') + big_endian(id, 4));
  return box("trak", head + more + box("mdia", box("hdlr", std::string(8, '\0') + handler)));
}

std::string mp4(const std::string& tracks) {
  return box("ftyp", "isom\0\0\0\0"s) + box("mdat", "1234") + box("moov", tracks);
}

TEST(MediaKind, PicturesBesideChaptersAreNoClip) {
  const std::string told = box("tref", box("chap", big_endian(7, 4) + big_endian(2, 4)));
  EXPECT_EQ(kind_of(to_bytes(mp4(track(1, "soun", told) + track(2, "vide")))), sound_alone);
  EXPECT_EQ(kind_of(to_bytes(mp4(track(2, "vide") + track(1, "soun", told)))), sound_alone);
  EXPECT_EQ(kind_of(to_bytes(mp4(track(1, "soun", told) + track(3, "vide")))), clip_with_sound);
}

TEST(MediaKind, ATrackOfAnotherKindIsNeither) {
  // The descriptions of streams that MP4 files of MPEG-4 Systems have.
  EXPECT_EQ(kind_of(to_bytes(mp4(track(1, "soun") + track(2, "odsm") + track(3, "sdsm")))),
            sound_alone);
  // A decoder may take these for pictures.
  EXPECT_EQ(kind_of(to_bytes(mp4(track(1, "soun") + track(2, "auxv")))), untold);
  EXPECT_EQ(kind_of(to_bytes(mp4(track(1, "soun") + track(2, "text") + track(3, "tmcd")))),
            sound_alone);
  EXPECT_EQ(kind_of(to_bytes(mp4(track(1, "text")))), untold);
}

// Ids of wide track headers stand behind longer times.
TEST(MediaKind, WideTrackHeadersAreRead) {
  const std::string told = box("tref", box("chap", big_endian(2, 4)));
  const std::string wide = box("tkhd", "\1"s + std::string(19, '\0') + big_endian(2, 4));
  const std::string pictures =
      box("trak", wide + box("mdia", box("hdlr", std::string(8, '\0') + "vide")));
  EXPECT_EQ(kind_of(to_bytes(mp4(track(1, "soun", told) + pictures))), sound_alone);
}

TEST(MediaKind, AListThatIsNotThereSaysNothing) {
  EXPECT_EQ(kind_of(to_bytes(box("ftyp", "isom\0\0\0\0"s) + box("mdat", "1234"))), untold);
  EXPECT_EQ(kind_of(to_bytes(mp4(""))), untold);
  EXPECT_EQ(kind_of(to_bytes("\x1a\x45\xdf\xa3\x80"s)), untold);
  for (const char* name : {"aac.m4a", "flac.mkv"}) {
    const Bytes whole = clip_file(name);
    for (std::size_t size = 0; size < whole.size(); size += 7) {
      const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      if (size < 40) continue;  // the brand
      const Kind kind = kind_of(part);
      EXPECT_TRUE(kind == untold || kind == sound_alone) << name << " of " << size << " bytes";
    }
  }
}

// What a file of many small pieces costs is bounded, and then nothing is claimed about it.
TEST(MediaKind, AListBehindTooMuchSaysNothing) {
  std::string many;
  for (int i = 0; i < 200'000; ++i) many += box("free", "");
  const std::string brand = box("ftyp", "isom\0\0\0\0"s);
  const std::string moov = box("moov", track(1, "soun"));
  EXPECT_EQ(kind_of(to_bytes(brand + many.substr(0, 8'000) + moov)), sound_alone);
  EXPECT_EQ(kind_of(to_bytes(brand + many + moov)), untold);
  EXPECT_EQ(kind_of(to_bytes(mp4(track(1, "soun") + many + track(2, "vide")))), untold)
      << "half a list is none";
  const std::string head = "\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff"s;
  const std::string tracks = "\x16\x54\xae\x6b\x85\xae\x83\x83\x81\x02"s;
  std::string empty;
  for (int i = 0; i < 200'000; ++i) empty += "\xec\x80"s;
  EXPECT_EQ(kind_of(to_bytes(head + tracks)), sound_alone);
  EXPECT_EQ(kind_of(to_bytes(head + empty.substr(0, 2'000) + tracks)), sound_alone);
  EXPECT_EQ(kind_of(to_bytes(head + empty + tracks)), untold);
}

}  // namespace
}  // namespace vitrove::test
