// Log-mel features beyond parity: the transform, the edges of what is taken, parameters.
#include <cmath>
#include <numbers>

#include "preprocess/log_mel.h"
#include "preprocess/real_dft.h"
#include "support.h"

namespace vitrove::test {
namespace {

constexpr std::string_view whisper =
    R"({"feature_extractor_type": "WhisperFeatureExtractor", "chunk_length": 1})";
constexpr std::string_view qwen2_audio =
    R"({"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 128,
        "processor_class": "Qwen2AudioProcessor"})";

// By its definition, in long double.
double power_of_bin(const std::vector<double>& frame, std::size_t bin) {
  long double real = 0;
  long double imaginary = 0;
  for (std::size_t i = 0; i < frame.size(); ++i) {
    const long double angle = -2 * std::numbers::pi_v<long double> *
                              static_cast<long double>(i * bin % frame.size()) /
                              static_cast<long double>(frame.size());
    real += frame[i] * std::cos(angle);
    imaginary += frame[i] * std::sin(angle);
  }
  return static_cast<double>(real * real + imaginary * imaginary);
}

TEST(RealTransform, EqualsItsDefinitionForAllKindsOfSizes) {
  for (const std::size_t points : {2u, 3u, 7u, 8u, 9u, 15u, 64u, 97u, 100u, 400u, 480u}) {
    RealDft dft(points);
    std::vector<double> input(points * RealDft::frames);
    std::vector<double> power(dft.bins() * RealDft::frames);
    for (std::size_t i = 0; i < input.size(); ++i) {
      input[i] = hashed(static_cast<std::uint32_t>(i), 3) / 4294967296.0 - 0.5;
    }
    dft.power(input, power);
    for (std::size_t f = 0; f < RealDft::frames; ++f) {
      std::vector<double> frame(points);
      for (std::size_t i = 0; i < points; ++i) frame[i] = input[i * RealDft::frames + f];
      for (std::size_t bin = 0; bin < dft.bins(); ++bin) {
        ASSERT_NEAR(power[bin * RealDft::frames + f], power_of_bin(frame, bin), 1e-10)
            << points << " points, bin " << bin;
      }
    }
  }
}

PreprocessedItem features_of(std::string_view config, std::vector<float> samples,
                             std::string_view kwargs = {}) {
  const auto preprocessor = make_preprocessor(config, {}, {.max_sound_seconds = 30});
  const ResolvedParams params = preprocessor->resolve(Modality::audio, kwargs);
  return preprocessor->run_audio({std::move(samples), preprocessor->audio_rate(params)}, params);
}

TEST(LogMel, SilenceIsTheFloor) {
  const PreprocessedItem item = features_of(whisper, std::vector<float>(8000, 0.0F));
  EXPECT_EQ(item.primary().shape, (std::vector<std::int64_t>{80, 100}));
  for (const float value : item.primary().floats()) ASSERT_EQ(value, -1.5F);
}

// What is known to be silent is not computed; that must not show.
TEST(LogMel, PaddingIsWhatZerosInTheSoundAre) {
  std::vector<float> samples;
  for (std::uint32_t i = 0; i < 5'003; ++i) {
    samples.push_back(static_cast<float>(hashed(i, 1)) / 4294967296.0F - 0.5F);
  }
  std::vector<float> padded = samples;
  padded.resize(16'000);
  EXPECT_EQ(features_of(whisper, samples).primary().data,
            features_of(whisper, padded).primary().data);
}

TEST(LogMel, WhatIsLongerThanTheChunkIsCutOff) {
  std::vector<float> samples(16'000, 0.25F);
  const auto whole = features_of(whisper, samples);
  samples.resize(48'000, -0.75F);
  EXPECT_EQ(features_of(whisper, samples).primary().data, whole.primary().data);
  EXPECT_EQ(features_of(whisper, samples, R"({"chunk_length": 3})").primary().shape,
            (std::vector<std::int64_t>{80, 300}));
}

TEST(LogMel, ASoundOfNoTokenIsRefused) {
  EXPECT_EQ(failure_of([] { features_of(whisper, {}); }).status(), 400);
  EXPECT_EQ(features_of(whisper, {0.5F}).tokens, 50u);
  EXPECT_EQ(failure_of([] { features_of(qwen2_audio, std::vector<float>(320, 0.1F)); }).status(),
            400);
  const PreprocessedItem shortest = features_of(qwen2_audio, std::vector<float>(321, 0.1F));
  EXPECT_EQ(shortest.tokens, 1u);
  ASSERT_EQ(shortest.tensors.size(), 2u);
  EXPECT_EQ(shortest.tensors[1].name, "feature_attention_mask");
}

TEST(LogMelParameters, AreResolvedAndTheModelsOwnAreKept) {
  const auto preprocessor = make_preprocessor(whisper, {}, {.max_sound_seconds = 2});
  const auto resolve = [&](std::string_view kwargs) {
    return preprocessor->resolve(Modality::audio, kwargs);
  };
  EXPECT_EQ(resolve(R"({"chunk_length": 1, "n_fft": 400, "dither": 0})"), resolve(""));
  EXPECT_NE(resolve(R"({"chunk_length": 2})"), resolve(""));
  EXPECT_NE(resolve(R"({"return_attention_mask": true})"), resolve(""));
  for (const char* kwargs :
       {R"({"n_fft": 512})", R"({"hop_length": 80})", R"({"feature_size": 128})",
        R"({"sampling_rate": 8000})", R"({"chunk_length": 0})", R"({"chunk_length": 1.5})",
        R"({"dither": 0.1})", R"({"padding_side": "left"})", R"({"max_pixels": 9})", "[]"}) {
    EXPECT_EQ(failure_of([&] { resolve(kwargs); }).status(), 400) << kwargs;
  }
  for (const Modality modality : {Modality::image, Modality::video}) {
    EXPECT_EQ(failure_of([&] { preprocessor->resolve(modality, ""); }).status(), 415);
  }
  EXPECT_EQ(failure_of([&] { preprocessor->run(noise_image(9, 9, 1), {}); }).status(), 415);
  EXPECT_EQ(failure_of([&] { preprocessor->bytes_beside(9, 9, {}); }).status(), 415);
}

TEST(LogMelParameters, OfAFileThatCannotBeFollowedAreRefused) {
  for (const char* config :
       {R"({"feature_extractor_type": "WhisperFeatureExtractor", "do_normalize": true})",
        R"({"feature_extractor_type": "WhisperFeatureExtractor", "dither": 0.5})",
        R"({"feature_extractor_type": "WhisperFeatureExtractor", "hop_length": 401})"}) {
    EXPECT_EQ(failure_of([&] { make_preprocessor(config); }).status(), 400) << config;
  }
}

TEST(LogMelMemory, CoversTheFeatures) {
  const auto preprocessor = make_preprocessor(qwen2_audio);
  const ResolvedParams params = preprocessor->resolve(Modality::audio, "");
  EXPECT_GE(preprocessor->audio_bytes_beside(1, params),
            4u * 128 * 3000 + 8u * 3000 + 4u * 480'000);
}

}  // namespace
}  // namespace vitrove::test
