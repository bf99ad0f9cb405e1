// Sounds: layouts, rates, codecs, and what is refused (field case B14).
#include <cstring>
#include <limits>

#include "clips.h"
#include "media/resampler.h"

namespace vitrove::test {
namespace {

TEST(Audio, EveryLayoutAndCodecIsTheSameSound) {
  for (const char* name :
       {"plain.wav", "stereo.wav", "cd.wav", "telephone.wav", "float.wav", "deep.wav",
        "stereo.flac", "stereo.mp3", "opus.ogg", "vorbis.ogg", "aac.m4a", "adts.aac", "alac.m4a",
        "pages.ogg", "opus.webm", "both.mp4"}) {
    SCOPED_TRACE(name);
    const AudioClip clip = decode_sound(name).clip;
    EXPECT_EQ(clip.rate, 16'000u);
    EXPECT_NEAR(static_cast<double>(clip.samples.size()), sound_seconds * 16'000, 800);
    // The mean of two tones of 0.5, each on one side.
    EXPECT_NEAR(amplitude(clip, 440), 0.25, 0.02);
    EXPECT_NEAR(amplitude(clip, 660), 0.25, 0.02);
    EXPECT_NEAR(amplitude(clip, 1000), 0, 0.01);
  }
}

TEST(Audio, TheSameFileGivesTheSameBytesEachTime) {
  EXPECT_EQ(decode_sound("cd.wav").clip.samples, decode_sound("cd.wav").clip.samples);
  EXPECT_EQ(decode_sound("stereo.mp3").clip.samples, decode_sound("stereo.mp3").clip.samples);
}

TEST(Audio, AFlacIsTheSameAsTheWavThatItWasMadeOf) {
  EXPECT_EQ(decode_sound("stereo.flac").clip.samples, decode_sound("cd.wav").clip.samples);
}

std::string u32(std::uint32_t value) {
  std::string text(4, '\0');
  for (std::size_t i = 0; i < 4; ++i) text[i] = static_cast<char>(value >> (8 * i));
  return text;
}

std::string u16(std::uint32_t value) { return u32(value).substr(0, 2); }

// Samples as 32-bit floats.
Bytes float_wav(const std::vector<float>& samples, std::uint32_t rate, std::uint32_t channels = 1) {
  std::string data(samples.size() * sizeof(float), '\0');
  if (!data.empty()) std::memcpy(data.data(), samples.data(), data.size());
  const std::string format =
      u16(3) + u16(channels) + u32(rate) + u32(rate * 4 * channels) + u16(4 * channels) + u16(32);
  const std::string body =
      "WAVEfmt " + u32(16) + format + "data" + u32(static_cast<std::uint32_t>(data.size())) + data;
  return to_bytes("RIFF" + u32(static_cast<std::uint32_t>(body.size())) + body);
}

AudioClip decode_floats(const std::vector<float>& samples, std::uint32_t rate,
                        std::uint32_t channels = 1) {
  return decode_audio(float_wav(samples, rate, channels), 16'000, {}).clip;
}

TEST(Audio, ChannelsAreAveraged) {
  const AudioClip clip = decode_floats({1.0F, 0.0F, 0.5F, -0.5F, -1.0F, 0.25F}, 16'000, 2);
  EXPECT_EQ(clip.samples, (std::vector<float>{0.5F, 0.0F, -0.375F}));
}

TEST(Audio, AtEqualRatesSamplesPassAsTheyAre) {
  const std::vector<float> samples{0.1F, -0.2F, 1.5F, 0.0F};
  EXPECT_EQ(decode_floats(samples, 16'000).samples, samples);
}

TEST(Audio, OneSampleIsASound) { EXPECT_EQ(decode_floats({0.5F}, 16'000).samples.size(), 1u); }

TEST(Audio, NothingAndWhatIsNoNumberIsRefused) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinite = std::numeric_limits<float>::infinity();
  for (const auto& samples : {std::vector<float>{}, std::vector<float>{0.1F, nan, 0.1F},
                              std::vector<float>{0.1F, infinite}}) {
    const Failure failure = sound_failure(float_wav(samples, 16'000));
    EXPECT_EQ(failure.status(), 400) << failure.message;
    expect_safe_for_clients(failure.message);
  }
}

TEST(Audio, VideoWithoutSoundAndPicturesAreRefused) {
  const Failure failure = sound_failure(clip_file("h264.mp4"));
  EXPECT_EQ(failure.status(), 415);
  EXPECT_NE(failure.message.find("no sound"), std::string::npos) << failure.message;
  EXPECT_EQ(sound_failure(picture("plain.jpg")).status(), 415);
}

TEST(AudioLimits, AreNamed) {
  const Bytes bytes = clip_file("stereo.mp3");
  const Failure failure = sound_failure(bytes, {.max_seconds = 0.5});
  EXPECT_EQ(failure.status(), 413);
  EXPECT_NE(failure.message.find("seconds"), std::string::npos) << failure.message;
  EXPECT_EQ(sound_failure(bytes, {.max_item_bytes = 100}).status(), 413);
  EXPECT_NO_THROW(decode_audio(bytes, 16'000, {.max_seconds = 1.0}));
  // 0.6 seconds of two channels, and what an MP3 has before and after them.
  const Failure many = sound_failure(bytes, {.max_samples = 50'000});
  EXPECT_EQ(many.status(), 413);
  EXPECT_NE(many.message.find("limit of 50000 samples"), std::string::npos) << many.message;
  EXPECT_NO_THROW(decode_audio(bytes, 16'000, {.max_samples = 60'000}));
}

TEST(DamagedAudio, ACutFileIsRefused) {
  for (const char* name : {"plain.wav", "stereo.flac", "aac.m4a", "opus.webm"}) {
    SCOPED_TRACE(name);
    Bytes bytes = clip_file(name);
    bytes.resize(bytes.size() / 2);
    const Failure failure = sound_failure(bytes);
    EXPECT_EQ(failure.status(), 400) << failure.message;
  }
}

TEST(AudioBudget, CoversSamplesAndCaller) {
  MemoryBudget budget(std::uint64_t{64} << 20);
  DecodeContext context{.budget = &budget};
  std::uint64_t promised = 0;
  context.bytes_beside = [&](const MediaShape& shape) {
    promised = shape.samples;
    return std::uint64_t{1000};
  };
  {
    const DecodedAudio decoded = decode_audio(clip_file("cd.wav"), 16'000, {}, context);
    EXPECT_GE(promised, decoded.clip.samples.size());
    EXPECT_EQ(budget.used(), decoded.clip.samples.capacity() * sizeof(float) + 1000);
  }
  EXPECT_EQ(budget.used(), 0u);
}

std::vector<float> resample(const std::vector<float>& samples, std::uint32_t from, std::uint32_t to,
                            std::size_t piece) {
  Resampler resampler{FilterShape(from, to)};
  for (std::size_t at = 0; at < samples.size(); at += piece) {
    resampler.push(std::span(samples).subspan(at, std::min(piece, samples.size() - at)));
  }
  resampler.finish();
  return resampler.output();
}

TEST(Resampling, DoesNotDependOnHowTheSoundIsCut) {
  std::vector<float> samples(5'000);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i] = static_cast<float>(std::sin(static_cast<double>(i) * 0.05));
  }
  const auto whole = resample(samples, 44'100, 16'000, samples.size());
  EXPECT_EQ(whole.size(), 1'815u);  // ceil(5000 * 16000 / 44100)
  EXPECT_EQ(resample(samples, 44'100, 16'000, 1), whole);
  EXPECT_EQ(resample(samples, 44'100, 16'000, 997), whole);
}

TEST(Resampling, KeepsAConstantAndMakesAsManySamplesAsTheTimeAsksFor) {
  for (const std::uint32_t from : {8'000u, 11'025u, 22'050u, 32'000u, 48'000u, 96'000u, 44'101u}) {
    SCOPED_TRACE(from);
    const auto out = resample(std::vector<float>(from, 0.75F), from, 16'000, 4'096);
    ASSERT_EQ(out.size(), 16'000u);
    for (std::size_t i = 2'000; i < 14'000; ++i) ASSERT_NEAR(out[i], 0.75F, 1e-5F) << i;
  }
}

// 10 kHz cannot be told at 16000 samples a second, and must not come back as 6 kHz.
TEST(Resampling, TakesAwayWhatTheNewRateCannotHold) {
  std::vector<float> samples(48'000);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i] = static_cast<float>(
        std::sin(2 * std::numbers::pi * 10'000 * static_cast<double>(i) / 48'000));
  }
  const AudioClip clip{resample(samples, 48'000, 16'000, samples.size()), 16'000};
  EXPECT_LT(amplitude(clip, 6'000), 1e-4);
}

TEST(Resampling, RatesThatNeedTooManyFiltersAreRefused) {
  EXPECT_EQ(failure_of([] { FilterShape(383'999, 16'000); }).status(), 415);
}

}  // namespace
}  // namespace vitrove::test
