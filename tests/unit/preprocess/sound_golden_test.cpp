// Sounds from file to key: what is decoded, which features are made of it, and what goes into the
// key (tests/data/make_sound_fixtures.py, tests/data/make_golden_keys.py).
#include <cmath>
#include <cstdio>
#include <numeric>

#include "parity_fixtures.h"
#include "support/golden_keys.h"

namespace vitrove::test {
namespace {

// Logarithms of the C library may differ in their last bits.
constexpr double last_bits = 1e-6;

const nlohmann::json& golden_sounds() {
  static const nlohmann::json document = read_json("sounds/golden.json");
  return document;
}

std::uint32_t version_of(const std::vector<PipelineVersion>& versions, std::string_view name) {
  for (const PipelineVersion& one : versions) {
    if (one.name == name) return one.version;
  }
  ADD_FAILURE() << "no version of " << name;
  return 0;
}

// Other bytes under the same version would be served for sounds that are decoded differently by
// now.
TEST(GoldenSounds, FilesDecodeToThePinnedSamples) {
  const nlohmann::json& golden = golden_sounds();
  EXPECT_EQ(version_of(decoder_versions(Modality::audio), "audio"), golden.at("decoder_version"))
      << "raise the version in the script that makes the fixtures as well, and run it";
  ASSERT_GE(golden.at("decoded").size(), 10u);
  for (const auto& [name, expected] : golden.at("decoded").items()) {
    SCOPED_TRACE(name);
    const auto samples =
        decode_audio(file_bytes(data_dir() / "clips" / name), 16'000, {}).clip.samples;
    EXPECT_EQ(samples.size(), expected.at("samples"));
    EXPECT_EQ(crc_text(std::span(samples)), expected.at("crc32"))
        << "if the samples were meant to change, raise the decoder's version";
  }
}

TEST(GoldenSounds, EveryFamilyMakesThePinnedFeatures) {
  const nlohmann::json& golden = golden_sounds();
  ASSERT_GE(golden.at("features").size(), 15u);
  double worst = 0;
  for (const auto& item : golden.at("features")) {
    SCOPED_TRACE(item.at("config").dump() + item.at("tone").dump());
    const auto preprocessor = make_preprocessor(golden.at("configs").at(item.at("config")).dump());
    const ResolvedParams params = preprocessor->resolve(Modality::audio, "");
    const PreprocessedItem out =
        preprocessor->run_audio(sound_of(item, preprocessor->audio_rate(params)), params);
    const Tensor& tensor = out.primary();
    EXPECT_EQ(tensor.name, "input_features");
    ASSERT_EQ(tensor.shape, item.at("shape").get<std::vector<std::int64_t>>());
    EXPECT_EQ(out.tokens, item.at("tokens"));
    const std::span<const float> values = tensor.floats();
    const auto step = golden.at("step").get<std::size_t>();
    for (std::size_t i = 0; i < item.at("values").size(); ++i) {
      const double expected = item.at("values").at(i);
      worst = std::max(worst, std::abs(double{values[i * step % values.size()]} - expected));
    }
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    worst = std::max(
        worst, std::abs(sum / static_cast<double>(values.size()) - item.at("mean").get<double>()));
    EXPECT_LE(worst, last_bits) << "if the values were meant to change, raise the family's version";
    for (const PipelineVersion& version : preprocessor->versions()) {
      EXPECT_EQ(version.version, golden.at("version"))
          << "raise the version in the script that makes the fixtures as well, and run it";
    }
  }
  std::printf("[ golden   ] sounds, largest difference %.1e\n", worst);
}

// A parameter that is renamed, typed otherwise, added or left out makes every stored sound
// unreachable; one that is forgotten serves the rows of another. Field cases B22, B25.
TEST(GoldenSounds, EveryFamilyPutsThePinnedParametersIntoTheKey) {
  const nlohmann::json& sounds = golden_keys().at("sounds");
  ASSERT_GE(sounds.size(), 8u);
  for (const auto& entry : sounds) {
    SCOPED_TRACE(entry.at("name"));
    const auto preprocessor = make_preprocessor(entry.at("config").dump());
    KeyParts parts = parts_from(entry);
    parts.preprocessing = preprocessor->resolve(Modality::audio, entry.at("kwargs").dump());
    parts.pipeline = preprocessor->versions();
    parts.pipeline.push_back({"audio", version_of(decoder_versions(Modality::audio), "audio")});
    EXPECT_EQ(parts.preprocessing.canonical(), params_from(entry.at("preprocessing")).canonical());
    EXPECT_EQ(make_key(parts).text(), entry.at("key").get<std::string>());
  }
}

}  // namespace
}  // namespace vitrove::test
