// Model directories made for the purpose: each graph moves numbers around and does no arithmetic
// that rounds, so that rows can be foretold exactly.
#include "encoders/onnx/onnx_encoder.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "onnx_builder.h"
#include "sample.h"
#include "support.h"

namespace vitrove::test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr std::int64_t open = -1;

// Makes one and the same item of every picture.
class FixedPreprocessor final : public Preprocessor {
 public:
  explicit FixedPreprocessor(PreprocessedItem item, std::string family = "fixed")
      : item_(std::move(item)), family_(std::move(family)) {}
  std::string_view family() const override { return family_; }
  ResolvedParams resolve(Modality, std::string_view) const override { return {}; }
  PreprocessedItem run(const RgbImage&, const ResolvedParams&) const override { return item_; }
  std::vector<PipelineVersion> versions() const override { return {}; }

 private:
  PreprocessedItem item_;
  std::string family_;
};

// [3, 2, 2], counting from `first`.
PreprocessedItem small_item(float first = 0) { return float_item({3, 2, 2}, counting(12, first)); }

PreprocessedItem packed_item(Grid grid, float first = 0) {
  const auto patches = static_cast<std::size_t>(grid.t) * grid.h * grid.w;
  auto item = float_item({static_cast<std::int64_t>(patches), 2}, counting(2 * patches, first));
  item.grid = grid;
  return item;
}

Json config(const std::string& layout) {
  return {{"modality", "image"}, {"input", "pixel_values"}, {"output", "rows"}, {"layout", layout}};
}

Json packed_config() {
  Json json = config("packed");
  json["grid_input"] = "grid";
  return json;
}

// Channels of each place become a row: [N,3,2,2] to [N,4,3].
OnnxBuilder tokens_graph(const Shape& input = {open, 3, 2, 2}, const Shape& output = {open, 4, 3}) {
  OnnxBuilder graph;
  graph.input("pixel_values", OnnxType::float32, input)
      .constant("flat_shape", {3}, std::vector<std::int64_t>{0, 3, -1})
      .node("Reshape", {"pixel_values", "flat_shape"}, "flat")
      .node("Transpose", {"flat"}, "rows", {{"perm", {0, 2, 1}}})
      .output("rows", OnnxType::float32, output);
  return graph;
}

OnnxBuilder chw_graph() {
  OnnxBuilder graph;
  graph.input("pixel_values", OnnxType::float32, {open, 3, open, open})
      .node("Identity", {"pixel_values"}, "rows")
      .output("rows", OnnxType::float32, {open, 3, open, open});
  return graph;
}

// Two patches of two numbers make a row of four; "grid_seen" shows what the grid input got.
OnnxBuilder packed_graph() {
  OnnxBuilder graph;
  graph.input("pixel_values", OnnxType::float32, {open, 2})
      .input("grid", OnnxType::int64, {open, 3})
      .constant("merged_shape", {2}, std::vector<std::int64_t>{-1, 4})
      .node("Reshape", {"pixel_values", "merged_shape"}, "rows")
      .node("Cast", {"grid"}, "grid_seen", {{"to", {1}, false}})
      .output("rows", OnnxType::float32, {open, 4})
      .output("grid_seen", OnnxType::float32, {open, 3});
  return graph;
}

class OnnxEncoderTest : public ::testing::Test {
 protected:
  void write(const OnnxBuilder& graph, const Json& json) {
    write_file(directory_.path() / "model.onnx", graph.model());
    write_file(directory_.path() / "vitrove.json", json.dump());
  }

  std::unique_ptr<OnnxEncoder> load(const PreprocessedItem& probe = small_item(),
                                    const EncoderOptions& options = onnx_options()) {
    return std::make_unique<OnnxEncoder>(directory_.path(), options,
                                         std::make_unique<FixedPreprocessor>(probe));
  }

  Failure load_failure(const PreprocessedItem& probe = small_item()) {
    const Failure failure = failure_of([&] { load(probe); });
    EXPECT_EQ(failure.code, ErrorCode::invalid_argument) << failure.message;
    EXPECT_TRUE(is_one_line(failure.message)) << failure.message;
    EXPECT_THAT(failure.message, Not(HasSubstr(directory_.path().string())));
    return failure;
  }

  TemporaryDirectory directory_;
};

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
  const InputTensor ends = aux_tensor(AuxInput::cu_seqlens, batch, "ends", ElementType::int64);
  EXPECT_THAT(ends.shape, ElementsAre(4));
  std::vector<std::int64_t> values(4);
  ASSERT_EQ(ends.bytes.size(), 32U);
  std::copy(ends.bytes.begin(), ends.bytes.end(),
            std::as_writable_bytes(std::span(values)).begin());
  EXPECT_THAT(values, ElementsAre(0, 4, 6, 8));

  const InputTensor ids = aux_tensor(AuxInput::segment_ids, batch, "ids", ElementType::int32);
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

// Mistakes in a model directory, each told at load.

TEST_F(OnnxEncoderTest, AnInputThatTheGraphDoesNotHave) {
  Json json = config("tokens");
  json["input"] = "pixels";
  write(tokens_graph(), json);
  EXPECT_THAT(load_failure().message,
              HasSubstr("the graph has no input 'pixels' (it has: pixel_values)"));
}

TEST_F(OnnxEncoderTest, AnOutputThatTheGraphDoesNotHave) {
  Json json = config("tokens");
  json["output"] = "embedding";
  write(tokens_graph(), json);
  EXPECT_THAT(load_failure().message,
              HasSubstr("the graph has no output 'embedding' (it has: rows)"));
}

TEST_F(OnnxEncoderTest, AnInputThatNothingFeeds) {
  write(packed_graph(), config("packed"));
  EXPECT_THAT(load_failure(packed_item({1, 2, 2})).message,
              HasSubstr("nothing feeds the graph's input 'grid'"));
}

TEST_F(OnnxEncoderTest, ALayoutOfAnotherRank) {
  write(tokens_graph(), config("chw"));
  EXPECT_THAT(load_failure().message, HasSubstr("has shape [?,4,3], which is not layout 'chw'"));
}

TEST_F(OnnxEncoderTest, ABatchSizeThatIsFixedAtSeveralItems) {
  write(tokens_graph({4, 3, 2, 2}, {4, 4, 3}), config("tokens"));
  EXPECT_THAT(load_failure().message, HasSubstr("takes exactly 4 items a run"));
}

TEST_F(OnnxEncoderTest, AnInputThatTakesBytes) {
  OnnxBuilder graph;
  graph.input("pixel_values", OnnxType::int64, {open, 3, 2, 2})
      .node("Cast", {"pixel_values"}, "rows", {{"to", {1}, false}})
      .output("rows", OnnxType::float32, {open, 3, 2, 2});
  write(graph, config("chw"));
  EXPECT_THAT(load_failure().message, HasSubstr("takes int64; float32 and float16 can be fed"));
}

TEST_F(OnnxEncoderTest, AnOutputOfWholeNumbers) {
  OnnxBuilder graph;
  graph.input("pixel_values", OnnxType::float32, {open, 3, 2, 2})
      .node("Cast", {"pixel_values"}, "rows", {{"to", {7}, false}})
      .output("rows", OnnxType::int64, {open, 3, 2, 2});
  write(graph, config("chw"));
  EXPECT_THAT(load_failure().message, HasSubstr("rows are floating-point numbers"));
}

TEST_F(OnnxEncoderTest, AGridInputOfFloats) {
  OnnxBuilder graph = tokens_graph();
  graph.input("grid", OnnxType::float32, {open, 3});
  Json json = config("tokens");
  json["grid_input"] = "grid";
  write(graph, json);
  EXPECT_THAT(load_failure().message, HasSubstr("'grid' takes float32; int32 and int64"));
}

TEST_F(OnnxEncoderTest, AuxiliaryInputsThatThisBuildCannotCompute) {
  for (const char* kind : {"position_ids", "window_index", "pos_embed_index", "pos_embed_weight"}) {
    OnnxBuilder graph = packed_graph();
    graph.input("extra", OnnxType::int64, {open});
    Json json = packed_config();
    json["aux_inputs"] = {{"extra", kind}};
    write(graph, json);
    EXPECT_THAT(load_failure(packed_item({1, 2, 2})).message,
                HasSubstr("auxiliary input '" + std::string(kind) +
                          "' is not supported yet by this build (aux_inputs.extra)"));
  }
}

TEST_F(OnnxEncoderTest, AnAuxiliaryInputThatTheGraphDoesNotHave) {
  Json json = packed_config();
  json["aux_inputs"] = {{"ends", "cu_seqlens"}};
  write(packed_graph(), json);
  EXPECT_THAT(load_failure(packed_item({1, 2, 2})).message,
              HasSubstr("the graph has no input 'ends'"));
}

TEST_F(OnnxEncoderTest, APackedLayoutWithoutGrids) {
  write(packed_graph(), packed_config());
  EXPECT_THAT(load_failure(float_item({4, 2}, counting(8))).message,
              HasSubstr("needs grids, which preprocessing family 'fixed' does not make"));
}

TEST_F(OnnxEncoderTest, PreprocessingThatMakesAnotherShape) {
  write(tokens_graph(), config("tokens"));
  EXPECT_THAT(load_failure(float_item({3, 5, 5}, counting(75))).message,
              HasSubstr("preprocessing made a tensor of [3,5,5]"));
}

TEST_F(OnnxEncoderTest, AModelThatGivesNoRows) {
  OnnxBuilder graph;
  graph.input("pixel_values", OnnxType::float32, {open, 3, 2, 2})
      .constant("flat_shape", {3}, std::vector<std::int64_t>{0, 3, 4})
      .constant("zero", {1}, std::vector<std::int64_t>{0})
      .constant("one", {1}, std::vector<std::int64_t>{1})
      .node("Reshape", {"pixel_values", "flat_shape"}, "flat")
      .node("Slice", {"flat", "zero", "zero", "one"}, "rows")
      .output("rows", OnnxType::float32, {open, open, 4});
  write(graph, config("tokens"));
  EXPECT_THAT(load_failure().message, HasSubstr("the model cannot encode a picture"));
}

TEST_F(OnnxEncoderTest, FilesThatAreMissingEmptyOrNoModels) {
  EXPECT_THAT(load_failure().message, HasSubstr("no readable vitrove.json"));
  write_file(directory_.path() / "vitrove.json", config("tokens").dump());
  EXPECT_THAT(load_failure().message, HasSubstr("no readable model.onnx"));
  write_file(directory_.path() / "model.onnx", "");
  EXPECT_THAT(load_failure().message, HasSubstr("model.onnx is empty"));
  write_file(directory_.path() / "model.onnx", "<html>404</html>");
  EXPECT_THAT(load_failure().message, HasSubstr("model.onnx is damaged or not an ONNX file"));
  OnnxBuilder nonsense;
  nonsense.node("NoSuchOperator", {"a"}, "b");
  write_file(directory_.path() / "model.onnx", nonsense.model());
  const Failure failure = load_failure();
  EXPECT_THAT(failure.message, HasSubstr("ONNX Runtime cannot load model.onnx"));
  EXPECT_FALSE(failure.detail.empty());
}

TEST_F(OnnxEncoderTest, AModelDirectoryWithoutAPreprocessor) {
  write(tokens_graph(), config("tokens"));
  const Failure failure =
      failure_of([&] { make_encoder(directory_.path().string(), onnx_options()); });
  EXPECT_EQ(failure.code, ErrorCode::invalid_argument);
  EXPECT_THAT(failure.message, HasSubstr("no preprocessor_config.json"));
}

TEST_F(OnnxEncoderTest, AnExecutionProviderThatTheLibraryDoesNotOffer) {
  write(tokens_graph(), config("tokens"));
  EncoderOptions options = onnx_options();
  options.execution_provider = "abacus";
  const Failure failure = failure_of([&] { load(small_item(), options); });
  EXPECT_EQ(failure.code, ErrorCode::invalid_argument);
  EXPECT_THAT(failure.message, HasSubstr("'abacus' is not in this ONNX Runtime, which offers: "));
  EXPECT_THAT(failure.message, HasSubstr("cpu"));
}

// Fingerprints (field cases B26 and B38).

class FingerprintTest : public OnnxEncoderTest {
 protected:
  // A graph that adds external weights to its rows.
  static OnnxBuilder weighted_graph(const std::string& location = "weights.data") {
    OnnxBuilder graph;
    graph.input("pixel_values", OnnxType::float32, {open, 3, 2, 2})
        .external_constant("offset", {4}, location)
        .constant("flat_shape", {3}, std::vector<std::int64_t>{0, 3, -1})
        .node("Reshape", {"pixel_values", "flat_shape"}, "flat")
        .node("Add", {"flat", "offset"}, "rows")
        .output("rows", OnnxType::float32, {open, 3, 4});
    return graph;
  }

  void write_weights(const std::vector<float>& values) {
    write_file(directory_.path() / "weights.data", raw_bytes(std::span<const float>(values)));
  }

  Digest256 fingerprint(const Json& json, const std::string& family = "fixed") {
    write_file(directory_.path() / "vitrove.json", json.dump());
    return OnnxEncoder(directory_.path(), onnx_options(),
                       std::make_unique<FixedPreprocessor>(small_item(), family))
        .info()
        .fingerprint;
  }
};

TEST_F(FingerprintTest, ExternalWeightsAreUsedAndCounted) {
  write(weighted_graph(), config("tokens"));
  write_weights({1, 2, 3, 4});
  const auto before = fingerprint(config("tokens"));
  EXPECT_THAT(floats_of(encode_one(*load(), small_item())),
              ElementsAre(1, 3, 5, 7, 5, 7, 9, 11, 9, 11, 13, 15));
  EXPECT_EQ(fingerprint(config("tokens")), before);

  write_weights({1, 2, 3, 5});
  EXPECT_NE(fingerprint(config("tokens")), before);
  write_weights({1, 2, 3, 4});
  EXPECT_EQ(fingerprint(config("tokens")), before);
}

TEST_F(FingerprintTest, FilesThatTheModelDoesNotNameDoNotCount) {
  write(weighted_graph(), config("tokens"));
  write_weights({1, 2, 3, 4});
  const auto before = fingerprint(config("tokens"));
  write_file(directory_.path() / "notes.data", "anything");
  EXPECT_EQ(fingerprint(config("tokens")), before);
}

TEST_F(FingerprintTest, ExternalWeightsThatAreMissingOrOutsideAreRefused) {
  write(weighted_graph(), config("tokens"));
  EXPECT_THAT(load_failure().message, HasSubstr("weights file 'weights.data', which is missing"));
  write(weighted_graph("../weights.data"), config("tokens"));
  EXPECT_THAT(load_failure().message, HasSubstr("outside of its directory"));
  write(weighted_graph("/etc/passwd"), config("tokens"));
  EXPECT_THAT(load_failure().message, HasSubstr("outside of its directory"));
}

TEST_F(FingerprintTest, EverySettingThatChangesRowsCountsAndNamesForPeopleDoNot) {
  write(tokens_graph(), config("tokens"));
  const auto base = fingerprint(config("tokens"));

  Json named = config("tokens");
  named["name"] = "somebody's";
  named["revision"] = "v9";
  EXPECT_EQ(fingerprint(named), base);
  Json explicit_default = config("tokens");
  explicit_default["dtype"] = "float32";
  EXPECT_EQ(fingerprint(explicit_default), base);

  Json half = config("tokens");
  half["dtype"] = "float16";
  EXPECT_NE(fingerprint(half), base);
  EXPECT_NE(fingerprint(config("tokens"), "other"), base) << "another preprocessing family";
}

TEST_F(FingerprintTest, AnotherOutputOfTheSameFileIsAnotherModel) {
  OnnxBuilder graph = tokens_graph();
  graph.node("Identity", {"rows"}, "twin").output("twin", OnnxType::float32, {open, 4, 3});
  write(graph, config("tokens"));
  Json twin = config("tokens");
  twin["output"] = "twin";
  EXPECT_NE(fingerprint(config("tokens")), fingerprint(twin));
}

TEST_F(FingerprintTest, TheDirectorysNameDoesNotCount) {
  const TemporaryDirectory other;
  write(tokens_graph(), config("tokens"));
  const auto here = fingerprint(config("tokens"));
  std::filesystem::copy(directory_.path(), other.path() / "renamed");
  const OnnxEncoder moved(other.path() / "renamed", onnx_options(),
                          std::make_unique<FixedPreprocessor>(small_item()));
  EXPECT_EQ(moved.info().fingerprint, here);
  EXPECT_EQ(moved.info().name, "renamed");
}

}  // namespace
}  // namespace vitrove::test
