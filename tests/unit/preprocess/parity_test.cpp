// Preprocessing equals Hugging Face's: tensors, grids and token counts that its own processors
// made.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

#include "parity_fixtures.h"
#include "preprocess/patch_families.h"
#include "preprocess/patch_geometry.h"
#include "preprocess/processed_size.h"
#include "preprocess/resize.h"

namespace vitrove::test {
namespace {

constexpr double pixel_tolerance = 1e-5;
constexpr double log_mel_tolerance = 1e-4;

const ParityFixtures& fixtures() {
  static const ParityFixtures all;
  return all;
}

PreprocessedItem item_of(const Preprocessor& preprocessor, const nlohmann::json& fixture) {
  const auto modality = parse_modality(fixture.at("modality").get<std::string>());
  const ResolvedParams params = preprocessor.resolve(modality.value(), fixture.at("kwargs").dump());
  const auto& input = fixture.at("input");
  switch (modality.value()) {
    case Modality::video:
      return preprocessor.run_video(clip_of(input, preprocessor.video_sampling(params)), params);
    case Modality::audio:
      return preprocessor.run_audio(sound_of(input, preprocessor.audio_rate(params)), params);
    case Modality::image:
      break;
  }
  return preprocessor.run(picture_of(input), params);
}

// The largest difference of a value that is kept.
double worst_difference(const nlohmann::json& expected, std::span<const float> values) {
  double worst = 0;
  fixtures().each_value(expected, values.size(), [&](std::size_t place, float value) {
    const double difference = std::abs(double{values[place]} - double{value});
    if (!(difference <= worst)) worst = difference;
  });
  return worst;
}

// Sums of equal parts, the first ones longer by one where they do not come out even.
void expect_sums(const nlohmann::json& sums, std::span<const float> values, double tolerance) {
  const std::size_t parts = sums.size();
  const std::size_t all = values.size();
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t length = all / parts + (i < all % parts ? 1 : 0);
    const auto part = values.first(length);
    values = values.subspan(length);
    const double sum = std::accumulate(part.begin(), part.end(), 0.0);
    EXPECT_NEAR(sum, sums.at(i).get<double>(), tolerance * static_cast<double>(length));
  }
}

void expect_side(const nlohmann::json& fixture, const PreprocessedItem& item) {
  if (fixture.contains("grid")) {
    ASSERT_TRUE(item.grid.has_value());
    EXPECT_EQ((std::vector<std::uint32_t>{item.grid->t, item.grid->h, item.grid->w}),
              fixture.at("grid").get<std::vector<std::uint32_t>>());
  }
  if (fixture.contains("tokens")) {
    EXPECT_EQ(item.tokens, fixture.at("tokens").get<std::uint32_t>());
  }
  if (!fixture.contains("timestamps")) return;
  const auto times = fixture.at("timestamps").get<std::vector<double>>();
  ASSERT_EQ(item.side.timestamps.size(), times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_NEAR(item.side.timestamps[i], times[i], 1e-6);
  }
  EXPECT_NEAR(item.side.seconds_per_grid.value_or(0), fixture.at("seconds_per_grid"), 1e-9);
}

void expect_mask(const nlohmann::json& mask, const PreprocessedItem& item) {
  ASSERT_EQ(item.tensors.size(), 2u);
  const Tensor& tensor = item.tensors[1];
  EXPECT_EQ(tensor.name, mask.at("name"));
  const auto& values = std::get<std::vector<std::int64_t>>(tensor.data);
  const auto ones = mask.at("ones").get<std::ptrdiff_t>();
  ASSERT_EQ(values.size(), mask.at("size"));
  EXPECT_TRUE(std::all_of(values.begin(), values.begin() + ones, [](auto v) { return v == 1; }));
  EXPECT_TRUE(std::all_of(values.begin() + ones, values.end(), [](auto v) { return v == 0; }));
}

const std::string& page() {
  static const std::string text = [] {
    const auto bytes = file_bytes(source_dir() / "docs" / "media.md");
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }();
  return text;
}

// A row of the table in docs/media.md.
struct Row {
  int inputs = 0;
  double worst = 0;
  double worst_as_fast = 0;  // with the rounding of torchvision, where that is not the default
};

std::string row_of(const Preprocessor& preprocessor, Modality modality) {
  const std::string_view family = preprocessor.family();
  const std::string kind = modality == Modality::video ? "clips" : "pictures";
  if (family == "whisper") return "Whisper, sounds";
  if (family == "qwen2_audio") return "Qwen2-Audio, sounds";
  if (family == "qwen2_vl") return "Qwen2-VL, " + kind;
  if (family == "qwen3_vl") return "Qwen3-VL, " + kind;
  return "CLIP, SigLIP, ViT, DeiT, Bit, ConvNeXT, EfficientNet";
}

Row row_of_page(const std::string& name) {
  const std::string start = "| " + name + " | ";
  const std::size_t at = page().find(start);
  if (at == std::string::npos) return {};
  std::istringstream columns(page().substr(at + start.size(), 60));
  Row row;
  char bar = 0;
  columns >> row.inputs >> bar >> row.worst >> bar;
  if (bar == '(') columns >> row.worst_as_fast;
  return row;
}

// It has two digits; other C libraries may give other last bits.
void expect_told(double told, double measured) {
  EXPECT_LE(measured, told * 1.1);
  EXPECT_LE(told, measured * 1.1);
}

TEST(Parity, EveryFixtureEqualsTheReference) {
  std::map<std::string, Row> rows;
  ASSERT_GE(fixtures().all().size(), 40u);
  for (const auto& fixture : fixtures().all()) {
    SCOPED_TRACE(fixture.at("name"));
    const auto preprocessor = fixtures().preprocessor_of(fixture);
    const PreprocessedItem item = item_of(*preprocessor, fixture);
    const auto& expected = fixture.at("tensors").at(0);
    const Tensor& tensor = item.primary();
    EXPECT_EQ(tensor.name, expected.at("name"));
    ASSERT_EQ(tensor.shape, expected.at("shape").get<std::vector<std::int64_t>>());
    const double tolerance = item.modality == Modality::audio ? log_mel_tolerance : pixel_tolerance;
    const double worst = worst_difference(expected, tensor.floats());
    EXPECT_LE(worst, tolerance);
    if (expected.contains("sums")) expect_sums(expected.at("sums"), tensor.floats(), tolerance);
    expect_side(fixture, item);
    if (fixture.contains("mask")) expect_mask(fixture.at("mask"), item);
    const bool is_as_fast = item.modality == Modality::image &&
                            fixture.at("kwargs").value("resize_rounding", "") == "torchvision";
    Row& row = rows[row_of(*preprocessor, item.modality)];
    ++row.inputs;
    double& largest = is_as_fast ? row.worst_as_fast : row.worst;
    largest = std::max(largest, worst);
  }
  for (const auto& [name, row] : rows) {
    SCOPED_TRACE(name);
    std::printf("[ parity   ] %-52s %3d inputs, largest difference %.1e (%.1e)\n", name.c_str(),
                row.inputs, row.worst, row.worst_as_fast);
    const Row told = row_of_page(name);
    EXPECT_EQ(told.inputs, row.inputs);
    expect_told(told.worst, row.worst);
    expect_told(told.worst_as_fast, row.worst_as_fast);
  }
}

TEST(Parity, ThePageSaysHowMuchIsCompared) {
  std::map<std::string, std::set<std::pair<std::uint64_t, double>>> lengths;
  for (const auto& sampled : fixtures().sampling()) {
    lengths[sampled.at("family")].emplace(sampled.at("total"), sampled.at("rate"));
  }
  for (const std::string& words :
       {" on " + std::to_string(fixtures().all().size()) + " inputs",
        " in " + std::to_string(fixtures().sampling().size()) + " cases",
        " of " + std::to_string(lengths["qwen2_vl"].size()) + " lengths",
        " of " + std::to_string(lengths["qwen3_vl"].size()) + " by Qwen3-VL",
        " of " + std::to_string(fixtures().clip_sizes().size()) + " clips"}) {
    EXPECT_NE(page().find(words), std::string::npos) << words;
  }
}

TEST(Parity, ResizedBytesAreThoseOfThePinnedPillow) {
  int count = 0;
  for (const auto& fixture : fixtures().all()) {
    if (!fixture.contains("resized")) continue;
    SCOPED_TRACE(fixture.at("name"));
    const auto& resized = fixture.at("resized");
    const Size size{number(resized.at("size"), 0), number(resized.at("size"), 1)};
    const auto filter = static_cast<Resampling>(resized.at("resample").get<int>());
    const RgbImage out = resize(picture_of(fixture.at("input")), size, filter);
    EXPECT_EQ(crc_text(std::span<const std::uint8_t>(out.pixels)), resized.at("crc32"));
    ++count;
  }
  EXPECT_GE(count, 40);
}

// By the word of qwen-vl-utils and of Qwen3VLVideoProcessor.
TEST(Parity, TheFramesThatAreTakenAreThoseOfTheReference) {
  std::map<std::string, int> count;
  for (const auto& sampled : fixtures().sampling()) {
    SCOPED_TRACE(sampled.dump());
    const std::string family = sampled.at("family");
    const auto preprocessor =
        fixtures().preprocessor_of({{"config", family}, {"video_config", family}});
    const ResolvedParams params =
        preprocessor->resolve(Modality::video, sampled.at("kwargs").dump());
    const auto places = sample_frames(sampled.at("total"), sampled.at("rate"),
                                      preprocessor->video_sampling(params));
    EXPECT_EQ(places.size(), sampled.at("count"));
    if (sampled.contains("places")) {
      EXPECT_EQ(places, sampled.at("places").get<std::vector<std::uint64_t>>());
    } else {
      const std::vector<std::uint32_t> packed(places.begin(), places.end());
      EXPECT_EQ(crc_text(std::span(packed)), sampled.at("crc32"));
    }
    ++count[family + (places.size() % 2 == 1 ? " odd" : " even")];
  }
  EXPECT_GE(count["qwen2_vl even"], 200);
  EXPECT_EQ(count["qwen2_vl odd"], 0);
  EXPECT_GE(count["qwen3_vl even"], 50);
  EXPECT_GE(count["qwen3_vl odd"], 50);
}

// By the word of its fetch_video(), with the bounds that Qwen2.5-VL is published with; and what the
// reference makes of a file is not too large here.
TEST(Parity, ClipsOfQwen2HaveTheSizesOfQwenVlUtils) {
  const auto family = find_patch_family({.image = "Qwen2VLImageProcessor"});
  ASSERT_TRUE(family);
  int count = 0;
  for (const auto& sized : fixtures().clip_sizes()) {
    SCOPED_TRACE(sized.dump());
    const auto preprocessor = fixtures().preprocessor_of(sized);
    const ResolvedParams params = preprocessor->resolve(Modality::video, sized.at("kwargs").dump());
    const std::uint64_t frames = sized.at("frames");
    const Size from{number(sized.at("from"), 0), number(sized.at("from"), 1)};
    const Size to{number(sized.at("to"), 0), number(sized.at("to"), 1)};
    const PatchLayout layout =
        lay_out_clip(from, frames, patch_params_from(params, Modality::video), *family,
                     {.frame_pixels = area(to), .clip_pixels = frames * area(to)});
    EXPECT_EQ(layout.resized, to);
    EXPECT_GE(preprocessor->video_bytes_beside(
                  {.width = from.width, .height = from.height, .frames = frames}, params),
              12 * frames * area(to));
    ++count;
  }
  EXPECT_GE(count, 200);
}

TEST(Parity, NoFamilyIsWithoutFixtures) {
  std::map<std::string, int> count;
  for (const auto& fixture : fixtures().all()) {
    const std::string family(fixtures().preprocessor_of(fixture)->family());
    ++count[family + ' ' + fixture.at("modality").get<std::string>()];
  }
  for (const char* what :
       {"clip image", "siglip image", "vit image", "deit image", "bit image", "convnext image",
        "efficientnet image", "qwen2_vl image", "qwen2_vl video", "qwen3_vl image",
        "qwen3_vl video", "whisper audio", "qwen2_audio audio"}) {
    EXPECT_GE(count[what], 2) << what;
  }
}

}  // namespace
}  // namespace vitrove::test
