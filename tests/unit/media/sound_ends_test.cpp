// Where a sound ends when its file does not say so, or goes on behind it.
#include "clips.h"

namespace vitrove::test {
namespace {

std::string little_word(std::uint32_t value) {
  std::string text(4, '\0');
  for (std::size_t i = 0; i < 4; ++i) text[i] = static_cast<char>(value >> (8 * i));
  return text;
}

void put(Bytes& bytes, std::size_t at, const std::string& text) {
  std::memcpy(bytes.data() + at, text.data(), text.size());
}

Bytes joined(Bytes bytes, const std::string& tail) {
  const Bytes more = to_bytes(tail);
  bytes.insert(bytes.end(), more.begin(), more.end());
  return bytes;
}

std::vector<float> samples_of(const Bytes& bytes) {
  return decode_audio(bytes, 16'000, {}).clip.samples;
}

// A head that was written before anything was known.
Bytes piped_wav(const std::string& name, std::uint32_t riff_size, std::uint32_t data_size) {
  Bytes bytes = clip_file(name);
  put(bytes, 4, little_word(riff_size));
  put(bytes, find(bytes, "data") + 4, little_word(data_size));
  return bytes;
}

struct PipedSizes {
  const char* writer;
  std::uint32_t riff;
  std::uint32_t data;
};

TEST(WavOfUnknownLength, IsTheSameSoundAsOneThatTells) {
  const std::vector<PipedSizes> table{{"nothing told", 0, 0},
                                      {"only the head told", 36, 0},
                                      {"all bits", 0xffff'ffff, 0xffff'ffff},
                                      {"no room for the head", 0xffff'ffff, 0x7fff'ffff},
                                      {"sox", 0x7fff'f024, 0x7fff'f000},
                                      {"a recorder", 0x8000'0024, 0x8000'0000}};
  for (const char* name : {"plain.wav", "cd.wav", "telephone.wav", "float.wav", "deep.wav"}) {
    const auto expected = samples_of(clip_file(name));
    for (const PipedSizes& sizes : table) {
      SCOPED_TRACE(std::string(name) + ", " + sizes.writer);
      EXPECT_EQ(samples_of(piped_wav(name, sizes.riff, sizes.data)), expected);
    }
  }
}

TEST(WavOfUnknownLength, WhatIsLessThanASampleFrameAtItsEndIsLeftOut) {
  const Bytes piped = piped_wav("stereo.wav", 0xffff'ffff, 0xffff'ffff);
  EXPECT_EQ(samples_of(joined(piped, "abc")), samples_of(clip_file("stereo.wav")));
}

TEST(WavOfUnknownLength, WithoutASampleIsRefused) {
  Bytes empty = piped_wav("plain.wav", 36, 0);
  empty.resize(find(empty, "data") + 8);
  EXPECT_EQ(sound_failure(empty).status(), 400);
  const Bytes told = joined(empty, "LIST" + little_word(4) + "INFO");
  EXPECT_EQ(sound_failure(told).status(), 400) << "an honest zero, and another chunk";
}

TEST(WavOfKnownLength, IsDamagedWhenItIsCut) {
  for (const std::uint32_t claimed : {19'202u, 1'000'000u, 0xffff'fffeu, 0x7fff'f001u}) {
    const Failure failure = sound_failure(piped_wav("plain.wav", 36 + claimed, claimed));
    EXPECT_TRUE(failure.status() == 400 || failure.status() == 413) << claimed;
  }
  Bytes cut = clip_file("plain.wav");
  cut.resize(cut.size() - 2);
  EXPECT_EQ(sound_failure(cut).status(), 400);
}

TEST(Rf64, IsTheSameSoundAsItsWav) {
  const std::string plain = to_text(clip_file("plain.wav"));
  const std::size_t data = plain.find("data");
  const auto size = static_cast<std::uint32_t>(plain.size() - data - 8);
  const std::string sizes = little_word(size + 72) + little_word(0) + little_word(size) +
                            little_word(0) + little_word(size / 2) + std::string(8, '\0');
  const std::string file = "RF64" + little_word(0xffff'ffff) + "WAVEds64" + little_word(28) +
                           sizes + plain.substr(12, data - 12) + "data" + little_word(0xffff'ffff) +
                           plain.substr(data + 8);
  EXPECT_EQ(samples_of(to_bytes(file)), samples_of(clip_file("plain.wav")));
  const Failure cut = sound_failure(to_bytes(file.substr(0, file.size() - 1000)));
  EXPECT_EQ(cut.status(), 400) << cut.message;
}

TEST(Mp3, WhatFollowsItsLastFrameIsPassedOver) {
  const Bytes whole = clip_file("stereo.mp3");
  const auto expected = samples_of(whole);
  const std::vector<std::pair<const char*, std::string>> table{
      {"a zero byte", std::string(1, '\0')},
      {"16 zeros", std::string(16, '\0')},
      {"a frame's length of zeros", std::string(417, '\0')},
      {"1024 zeros", std::string(1024, '\0')},
      {"much more than a read", std::string(70'000, '\0')},
      {"text", std::string(1024, 'x')},
      {"LYRICS3", "LYRICSBEGININD0000200000LYRICS200" + ("TAG" + std::string(125, ' '))},
      {"ID3v1", "TAG" + std::string(125, '\0')},
      {"zeros before ID3v1", std::string(2000, '\0') + "TAG" + std::string(125, '\0')},
      {"half a sync", "\xff"}};
  for (const auto& [name, tail] : table) {
    SCOPED_TRACE(name);
    EXPECT_EQ(samples_of(joined(whole, tail)), expected);
  }
}

TEST(Mp3, DamageBetweenItsFramesStaysDamage) {
  const std::string whole = to_text(clip_file("stereo.mp3"));
  const std::size_t middle = whole.find("\xff\xfb", whole.size() / 2);
  ASSERT_NE(middle, whole.npos);
  const std::string start = whole.substr(0, middle);
  for (const std::string& between : {std::string(1024, '\0'), std::string(600, 'x')}) {
    const Failure failure = sound_failure(to_bytes(start + between + whole.substr(middle)));
    EXPECT_EQ(failure.status(), 400) << failure.message;
  }
}

TEST(Mp3, AFrameThatIsCutIsDamage) {
  const Bytes whole = clip_file("stereo.mp3");
  for (const std::size_t missing : {1u, 10u, 100u}) {
    Bytes cut = whole;
    cut.resize(whole.size() - missing);
    const Failure failure = sound_failure(cut);
    EXPECT_EQ(failure.status(), 400) << missing;
    EXPECT_EQ(failure.detail, "a frame is cut") << missing;
  }
}

TEST(Adts, IsCutWhenItsLastFrameIs) {
  Bytes cut = clip_file("adts.aac");
  cut.resize(cut.size() - 10);
  EXPECT_EQ(sound_failure(cut).status(), 400);
}

}  // namespace
}  // namespace vitrove::test
