// Exported towers (tests/data/towers, made by tests/data/make_tower_fixtures.py): the whole chain
// from a file's bytes to rows, by the word of Pillow, transformers and PyTorch.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sample.h"
#include "support.h"
#include "support/paths.h"
#include "vitrove/audio.h"
#include "vitrove/video.h"

namespace vitrove::test {
namespace {

using Json = nlohmann::json;

std::filesystem::path towers_dir() {
  return vitrove::test::source_dir() / "tests" / "data" / "towers";
}

Json towers() { return Json::parse(read_file(towers_dir() / "towers.json")).at("towers"); }

// The largest difference, relative to the largest number.
double relative_error(std::span<const float> rows, std::span<const float> reference) {
  EXPECT_EQ(rows.size(), reference.size());
  double difference = 0;
  double largest = 0;
  for (std::size_t i = 0; i < std::min(rows.size(), reference.size()); ++i) {
    difference = std::max(difference, std::abs(double{rows[i]} - double{reference[i]}));
    largest = std::max(largest, std::abs(double{reference[i]}));
  }
  return difference / largest;
}

PreprocessedItem preprocess_file(const Encoder& encoder, const std::string& media,
                                 Modality modality) {
  const std::string text = read_file(towers_dir() / "media" / media);
  const auto bytes = std::as_bytes(std::span(text));
  const Preprocessor& preprocessor = encoder.preprocessor();
  const ResolvedParams params = preprocessor.resolve(modality, {});
  switch (modality) {
    case Modality::image:
      return preprocessor.run(decode_image(bytes, {}).image, params);
    case Modality::video:
      return preprocessor.run_video(
          decode_video(bytes, preprocessor.video_sampling(params), {}).clip, params);
    case Modality::audio:
      return preprocessor.run_audio(decode_audio(bytes, preprocessor.audio_rate(params), {}).clip,
                                    params);
  }
  return {};
}

class TowerTest : public ::testing::TestWithParam<std::string> {
 protected:
  TowerTest() {
    for (const Json& tower : towers()) {
      if (tower.at("name") == GetParam()) tower_ = tower;
    }
  }

  std::filesystem::path directory() const { return towers_dir() / GetParam(); }

  PreprocessedItem item_of(const Json& item) const {
    return preprocess_file(*encoder_, item.at("media"),
                           *parse_modality(item.at("modality").get<std::string>()));
  }

  std::vector<PreprocessedItem> items() const {
    std::vector<PreprocessedItem> all;
    for (const Json& item : tower_.at("cases")) all.push_back(item_of(item));
    return all;
  }

  std::unique_ptr<Encoder> encoder_ = make_encoder(directory().string(), onnx_options());
  Json tower_;
};

TEST_P(TowerTest, TheWholeChainGivesTheRowsOfPyTorch) {
  const std::string bytes = read_file(directory() / "rows.bin");
  std::vector<float> all(bytes.size() / sizeof(float));
  rows_to_float32(std::as_bytes(std::span(bytes)), DType::float32, all);
  std::span<const float> rest = all;
  ASSERT_FALSE(tower_.at("cases").empty());
  for (const Json& item : tower_.at("cases")) {
    SCOPED_TRACE(item.dump());
    const auto rows = item.at("rows").get<std::uint32_t>();
    const auto dim = item.at("dim").get<std::uint32_t>();
    const PreprocessedItem preprocessed = item_of(item);
    if (!item.at("grid").is_null()) {
      ASSERT_TRUE(preprocessed.grid);
      EXPECT_EQ(*preprocessed.grid,
                (Grid{item.at("grid").at(0), item.at("grid").at(1), item.at("grid").at(2)}));
    }
    ASSERT_EQ(encoder_->info().dim, dim);
    EXPECT_EQ(encoder_->token_count(preprocessed), rows);
    const EncoderOutput output = encode_one(*encoder_, preprocessed);
    ASSERT_EQ(output.rows, rows);
    EXPECT_LE(relative_error(floats_of(output), rest.first(std::size_t{rows} * dim)), 1e-4);
    rest = rest.subspan(std::size_t{rows} * dim);
  }
  EXPECT_TRUE(rest.empty());
}

TEST_P(TowerTest, ABatchOfDifferentItemsGivesTheRowsOfEach) {
  const auto all = items();
  const std::string batch_class = encoder_->batch_class(all.front());
  for (const PreprocessedItem& item : all) {
    EXPECT_EQ(encoder_->batch_class(item), batch_class) << "all of a model's items share batches";
  }
  // Twice, so that equal items stand beside each other too.
  std::vector<PreprocessedItem> batch = all;
  batch.insert(batch.end(), all.rbegin(), all.rend());
  const auto together = encode_all(*encoder_, batch);
  ASSERT_EQ(together.size(), batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto alone = floats_of(encode_one(*encoder_, batch[i]));
    EXPECT_LE(relative_error(floats_of(together[i]), alone), 1e-5) << "item " << i;
  }
}

TEST_P(TowerTest, TheFingerprintIsTheOneThatTheExportWrote) {
  EXPECT_EQ(to_hex(encoder_->info().fingerprint), tower_.at("fingerprint"));
  EXPECT_EQ(Json::parse(read_file(directory() / "export.json")).at("fingerprint"),
            tower_.at("fingerprint"));
}

INSTANTIATE_TEST_SUITE_P(Towers, TowerTest,
                         ::testing::Values("clip", "siglip", "whisper", "qwen2_vl", "qwen2_5_vl",
                                           "qwen3_vl"),
                         [](const auto& test) { return test.param; });

TEST(Towers, NoneIsWithoutItsTests) { EXPECT_EQ(towers().size(), 6U); }

TEST(Towers, DeepstackLayersLengthenTheRows) {
  const auto encoder = make_encoder((towers_dir() / "qwen3_vl").string(), onnx_options());
  constexpr std::uint32_t out_hidden_size = 24;
  constexpr std::uint32_t deepstack_layers = 2;
  EXPECT_EQ(encoder->info().dim, out_hidden_size * (1 + deepstack_layers));
}

// A window is 8 patches wide: what is far apart mixes in the blocks of full attention alone.
TEST(Towers, EveryPatchOfAPictureMattersToEachOfItsRows) {
  const auto encoder = make_encoder((towers_dir() / "qwen2_5_vl").string(), onnx_options());
  PreprocessedItem item = preprocess_file(*encoder, "wide.png", Modality::image);
  const auto before = floats_of(encode_one(*encoder, item));
  auto& patches = std::get<std::vector<float>>(item.tensors.front().data);
  std::fill(patches.end() - 1176, patches.end(), 0.0F);
  const auto after = floats_of(encode_one(*encoder, item));
  EXPECT_NE(before.front(), after.front());
}

}  // namespace
}  // namespace vitrove::test
