#include "encoders/onnx/onnx_encoder.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx_fixture.h"

namespace vitrove::test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

TEST_F(OnnxEncoderTest, TokensAreEachItemsOwnRows) {
  write(tokens_graph(), config("tokens"));
  const auto encoder = load();
  EXPECT_EQ(encoder->info().dim, 3U);
  EXPECT_EQ(encoder->info().row_meaning, "tokens");
  EXPECT_EQ(encoder->token_count(small_item()), 4U);

  const std::vector items{small_item(0), small_item(100)};
  const auto outputs = encode_all(*encoder, items);
  ASSERT_EQ(outputs.size(), 2U);
  EXPECT_EQ(outputs[0].rows, 4U);
  EXPECT_THAT(floats_of(outputs[0]), ElementsAre(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11));
  EXPECT_THAT(floats_of(outputs[1]),
              ElementsAre(100, 104, 108, 101, 105, 109, 102, 106, 110, 103, 107, 111));
}

TEST_F(OnnxEncoderTest, AFeatureMapIsReadAsRowsOfChannels) {
  write(chw_graph(), config("chw"));
  const auto encoder = load();
  EXPECT_EQ(encoder->info().dim, 3U);
  EXPECT_EQ(encoder->info().row_meaning, "chw");
  EXPECT_EQ(encoder->token_count(small_item()), std::nullopt) << "height and width are open";

  const auto wide = float_item({3, 1, 5}, counting(15));
  const auto output = encode_one(*encoder, wide);
  EXPECT_EQ(output.rows, 5U);
  EXPECT_EQ(output.grid, (Grid{1, 1, 5}));
  EXPECT_THAT(floats_of(output), ElementsAre(0, 5, 10, 1, 6, 11, 2, 7, 12, 3, 8, 13, 4, 9, 14));
  EXPECT_NE(encoder->batch_class(wide), encoder->batch_class(small_item()));
}

TEST_F(OnnxEncoderTest, AFeatureMapLargerThanATileIsTurnedRight) {
  write(chw_graph(), config("chw"));
  const auto encoder = load();
  constexpr std::size_t height = 19, width = 23, places = height * width;
  const auto output = encode_one(
      *encoder, float_item({3, std::int64_t{height}, std::int64_t{width}}, counting(3 * places)));
  const auto rows = floats_of(output);
  ASSERT_EQ(rows.size(), 3 * places);
  for (std::size_t place = 0; place < places; ++place) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      ASSERT_EQ(rows[place * 3 + channel], static_cast<float>(channel * places + place));
    }
  }
}

TEST_F(OnnxEncoderTest, PackedItemsAreTakenApartByTheirGrids) {
  write(packed_graph(), packed_config());
  const auto encoder = load(packed_item({1, 2, 2}));
  EXPECT_EQ(encoder->info().dim, 4U);
  EXPECT_EQ(encoder->info().row_meaning, "packed");

  const std::vector items{packed_item({1, 2, 2}, 0), packed_item({2, 2, 3}, 100),
                          packed_item({1, 1, 2}, 200)};
  EXPECT_EQ(encoder->token_count(items[1]), 6U) << "two patches a row, as seen at load";
  EXPECT_EQ(encoder->batch_class(items[0]), encoder->batch_class(items[1]))
      << "items of any length pack together";
  const auto outputs = encode_all(*encoder, items);
  ASSERT_EQ(outputs.size(), 3U);
  EXPECT_THAT(floats_of(outputs[0]), ElementsAreArray(counting(8, 0)));
  EXPECT_THAT(floats_of(outputs[1]), ElementsAreArray(counting(24, 100)));
  EXPECT_THAT(floats_of(outputs[2]), ElementsAreArray(counting(4, 200)));
  EXPECT_THAT(encoder->run_output(items[1], "grid_seen"), ElementsAre(2, 2, 3));
}

TEST_F(OnnxEncoderTest, AuxiliaryInputsAreComputedFromTheGrids) {
  OnnxBuilder graph = packed_graph();
  graph.input("ends", OnnxType::int32, {open})
      .input("segments", OnnxType::int64, {open})
      .node("Cast", {"ends"}, "ends_seen", {{"to", {1}, false}})
      .node("Cast", {"segments"}, "segments_seen", {{"to", {1}, false}})
      .output("ends_seen", OnnxType::float32, {open})
      .output("segments_seen", OnnxType::float32, {open});
  Json json = packed_config();
  json["aux_inputs"] = {{"ends", "cu_seqlens"}, {"segments", "segment_ids"}};
  write(graph, json);
  const auto encoder = load(packed_item({1, 2, 2}));
  const auto clip = packed_item({3, 1, 2});
  EXPECT_THAT(encoder->run_output(clip, "ends_seen"), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(encoder->run_output(clip, "segments_seen"), ElementsAre(0, 0, 1, 1, 2, 2));
}

TEST(AuxTensor, CountsOnOverTheItemsOfABatch) {
  const PreprocessedItem a = packed_item({1, 2, 2});
  const PreprocessedItem b = packed_item({2, 1, 2});
  const PreprocessedItem* const batch[] = {&a, &b};
  const InputTensor ends = aux_tensor(AuxInput::cu_seqlens, {}, batch, "ends", ElementType::int64);
  EXPECT_THAT(ends.shape, ElementsAre(4));
  std::vector<std::int64_t> values(4);
  ASSERT_EQ(ends.bytes.size(), 32U);
  std::copy(ends.bytes.begin(), ends.bytes.end(),
            std::as_writable_bytes(std::span(values)).begin());
  EXPECT_THAT(values, ElementsAre(0, 4, 6, 8));

  const InputTensor ids = aux_tensor(AuxInput::segment_ids, {}, batch, "ids", ElementType::int32);
  std::vector<std::int32_t> numbers(8);
  ASSERT_EQ(ids.bytes.size(), 32U);
  std::copy(ids.bytes.begin(), ids.bytes.end(), std::as_writable_bytes(std::span(numbers)).begin());
  EXPECT_THAT(numbers, ElementsAre(0, 0, 0, 0, 1, 1, 2, 2));
}

TEST_F(OnnxEncoderTest, RowsAreConvertedToTheDtypeOfTheConfiguration) {
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    for (const OnnxType graph_type : {OnnxType::float32, OnnxType::float16, OnnxType::bfloat16}) {
      OnnxBuilder graph;
      graph.input("pixel_values", OnnxType::float32, {open, 3, 2, 2})
          .constant("flat_shape", {3}, std::vector<std::int64_t>{0, 3, -1})
          .node("Reshape", {"pixel_values", "flat_shape"}, "flat")
          .node("Cast", {"flat"}, "rows", {{"to", {static_cast<int>(graph_type)}, false}})
          .output("rows", graph_type, {open, 3, 4});
      Json json = config("tokens");
      json["dtype"] = to_string(dtype);
      write(graph, json);
      const auto encoder = load();
      EXPECT_EQ(encoder->info().dtype, dtype);
      EXPECT_EQ(encoder->info().dim, 4U);
      const auto output = encode_one(*encoder, small_item());
      EXPECT_EQ(output.bytes.size(), 12 * element_size(dtype));
      EXPECT_THAT(floats_of(output, dtype), ElementsAreArray(counting(12)));
    }
  }
}

TEST_F(OnnxEncoderTest, AGraphOfHalvesIsFedHalves) {
  OnnxBuilder graph;
  graph.input("pixel_values", OnnxType::float16, {open, 3, 2, 2})
      .node("Cast", {"pixel_values"}, "rows", {{"to", {1}, false}})
      .output("rows", OnnxType::float32, {open, 3, 2, 2});
  write(graph, config("chw"));
  const auto encoder = load();
  const std::vector items{small_item(0), small_item(64)};
  const auto outputs = encode_all(*encoder, items);
  EXPECT_THAT(floats_of(outputs[1]), ElementsAre(64, 68, 72, 65, 69, 73, 66, 70, 74, 67, 71, 75));
}

TEST_F(OnnxEncoderTest, OpenDimensionsAreFoundByEncodingAProbe) {
  write(tokens_graph({open, open, open, open}, {open, open, open}), config("tokens"));
  EXPECT_EQ(load()->info().dim, 3U);

  OnnxBuilder rankless;
  rankless.input("pixel_values", OnnxType::float32, {open, 3, 2, 2})
      .constant("flat_shape", {3}, std::vector<std::int64_t>{0, 3, -1})
      .node("Reshape", {"pixel_values", "flat_shape"}, "rows")
      .output_of_unknown_rank("rows", OnnxType::float32);
  write(rankless, config("tokens"));
  EXPECT_EQ(load()->info().dim, 4U);
}

TEST_F(OnnxEncoderTest, AGraphForOneItemIsRunItemByItem) {
  write(tokens_graph({1, 3, 2, 2}, {1, 4, 3}), config("tokens"));
  const auto encoder = load();
  const std::vector items{small_item(0), small_item(50), small_item(90)};
  const auto outputs = encode_all(*encoder, items);
  ASSERT_EQ(outputs.size(), 3U);
  EXPECT_EQ(floats_of(outputs[1])[0], 50);
  EXPECT_EQ(floats_of(outputs[2])[1], 94);
}

// Field case B35: outputs are copies, not views of what the runtime writes next.
TEST_F(OnnxEncoderTest, ALaterRunNeverChangesEarlierRows) {
  write(tokens_graph(), config("tokens"));
  const auto encoder = load();
  std::vector<EncoderOutput> kept;
  for (int i = 0; i < 26; ++i) {
    kept.push_back(encode_one(*encoder, small_item(static_cast<float>(i) * 20)));
  }
  for (int i = 0; i < 26; ++i) {
    EXPECT_EQ(floats_of(kept[static_cast<std::size_t>(i)]).front(), static_cast<float>(i) * 20);
  }
}

TEST_F(OnnxEncoderTest, AnItemOfAnotherShapeIsRefusedBeforeItIsQueued) {
  write(tokens_graph(), config("tokens"));
  const auto encoder = load();
  const Failure failure = failure_of([&] {
    encoder->batch_class(float_item({3, 4, 4}, counting(48)));
  });
  EXPECT_EQ(failure.code, ErrorCode::invalid_argument);
  EXPECT_THAT(failure.message, HasSubstr("[3,4,4]"));
  EXPECT_THAT(failure.message, HasSubstr("[?,3,2,2]"));
}

TEST_F(OnnxEncoderTest, ItemsOfDifferentShapesInOneBatchAreAnInternalError) {
  write(chw_graph(), config("chw"));
  const auto encoder = load();
  const std::vector items{small_item(), float_item({3, 1, 4}, counting(12))};
  EXPECT_EQ(failure_of([&] { encode_all(*encoder, items); }).code, ErrorCode::internal);
}

// Field case B37: rows that cannot be told apart are never handed on.
TEST_F(OnnxEncoderTest, ARowCountThatDoesNotFitThePatchesIsAnInternalError) {
  write(packed_graph(), packed_config());
  const auto encoder = load(packed_item({1, 2, 2}));
  // 3 + 3 patches make 3 rows, but no item has a whole number of them.
  const std::vector items{packed_item({1, 1, 3}), packed_item({1, 1, 3})};
  EXPECT_EQ(failure_of([&] { encode_all(*encoder, items); }).code, ErrorCode::internal);

  auto lying = packed_item({1, 2, 2});
  lying.grid = Grid{1, 2, 3};
  EXPECT_EQ(failure_of([&] { encode_one(*encoder, lying); }).code, ErrorCode::internal);

  auto gridless = packed_item({1, 2, 2});
  gridless.grid.reset();
  EXPECT_EQ(failure_of([&] { encode_one(*encoder, gridless); }).code, ErrorCode::internal);
}

TEST_F(OnnxEncoderTest, AGraphThatFailsIsAnInternalErrorAndWorksOn) {
  write(tokens_graph({open, open, open, open}, {open, open, open}), config("tokens"));
  const auto encoder = load();
  const auto odd = float_item({5, 1, 1}, counting(5));  // cannot be reshaped to three channels
  const Failure failure = failure_of([&] { encode_one(*encoder, odd); });
  EXPECT_EQ(failure.code, ErrorCode::internal);
  EXPECT_EQ(failure.message, "the encoder's graph failed");
  EXPECT_FALSE(failure.detail.empty());
  EXPECT_EQ(encode_one(*encoder, small_item()).rows, 4U);
}

TEST_F(OnnxEncoderTest, ADimThatChangesIsAnInternalError) {
  write(tokens_graph({open, open, open, open}, {open, open, open}), config("tokens"));
  const auto encoder = load();
  ASSERT_EQ(encoder->info().dim, 3U);
  OnnxBuilder graph;
  graph.input("pixel_values", OnnxType::float32, {open, 3, open, open})
      .constant("flat_shape", {3}, std::vector<std::int64_t>{0, 3, -1})
      .node("Reshape", {"pixel_values", "flat_shape"}, "rows")
      .output("rows", OnnxType::float32, {open, 3, open});
  write(graph, config("tokens"));
  const auto changing = load();
  EXPECT_EQ(changing->info().dim, 4U);
  EXPECT_EQ(failure_of([&] {
              encode_one(*changing, float_item({3, 1, 5}, counting(15)));
            }).code,
            ErrorCode::internal);
}

TEST_F(OnnxEncoderTest, AnUnknownOutputCannotBeRun) {
  write(tokens_graph(), config("tokens"));
  const auto encoder = load();
  EXPECT_EQ(failure_of([&] { encoder->run_output(small_item(), "scores"); }).code,
            ErrorCode::invalid_argument);
}

TEST_F(OnnxEncoderTest, ASoundModelNeedsNoProbe) {
  OnnxBuilder graph;
  graph.input("input_features", OnnxType::float32, {open, 8, open})
      .node("Transpose", {"input_features"}, "rows", {{"perm", {0, 2, 1}}})
      .output("rows", OnnxType::float32, {open, open, 8});
  Json json = config("tokens");
  json["modality"] = "audio";
  json["input"] = "input_features";
  write(graph, json);
  EXPECT_EQ(load()->info().dim, 8U);
  EXPECT_THAT(load()->info().modalities, ElementsAre(Modality::audio));

  OnnxBuilder open_dim;
  open_dim.input("input_features", OnnxType::float32, {open, open, open})
      .node("Identity", {"input_features"}, "rows")
      .output("rows", OnnxType::float32, {open, open, open});
  write(open_dim, json);
  EXPECT_THAT(load_failure().message, HasSubstr("leaves the dim of output 'rows' open"));
}

}  // namespace
}  // namespace vitrove::test
