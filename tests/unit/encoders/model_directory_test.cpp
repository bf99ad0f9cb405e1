// What a model directory may get wrong, each told at load, and what makes it another model.
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx_fixture.h"

namespace vitrove::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using ModelDirectoryTest = OnnxEncoderTest;

TEST_F(ModelDirectoryTest, AnInputThatTheGraphDoesNotHave) {
  Json json = config("tokens");
  json["input"] = "pixels";
  write(tokens_graph(), json);
  EXPECT_THAT(load_failure().message,
              HasSubstr("the graph has no input 'pixels' (it has: pixel_values)"));
}

TEST_F(ModelDirectoryTest, AnOutputThatTheGraphDoesNotHave) {
  Json json = config("tokens");
  json["output"] = "embedding";
  write(tokens_graph(), json);
  EXPECT_THAT(load_failure().message,
              HasSubstr("the graph has no output 'embedding' (it has: rows)"));
}

TEST_F(ModelDirectoryTest, AnInputThatNothingFeeds) {
  write(packed_graph(), config("packed"));
  EXPECT_THAT(load_failure(packed_item({1, 2, 2})).message,
              HasSubstr("nothing feeds the graph's input 'grid'"));
}

TEST_F(ModelDirectoryTest, ALayoutOfAnotherRank) {
  write(tokens_graph(), config("chw"));
  EXPECT_THAT(load_failure().message, HasSubstr("has shape [?,4,3], which is not layout 'chw'"));
}

TEST_F(ModelDirectoryTest, ABatchSizeThatIsFixedAtSeveralItems) {
  write(tokens_graph({4, 3, 2, 2}, {4, 4, 3}), config("tokens"));
  EXPECT_THAT(load_failure().message, HasSubstr("takes exactly 4 items a run"));
}

TEST_F(ModelDirectoryTest, AnInputThatTakesBytes) {
  OnnxBuilder graph;
  graph.input("pixel_values", OnnxType::int64, {open, 3, 2, 2})
      .node("Cast", {"pixel_values"}, "rows", {{"to", {1}, false}})
      .output("rows", OnnxType::float32, {open, 3, 2, 2});
  write(graph, config("chw"));
  EXPECT_THAT(load_failure().message, HasSubstr("takes int64; float32 and float16 can be fed"));
}

TEST_F(ModelDirectoryTest, AnOutputOfWholeNumbers) {
  OnnxBuilder graph;
  graph.input("pixel_values", OnnxType::float32, {open, 3, 2, 2})
      .node("Cast", {"pixel_values"}, "rows", {{"to", {7}, false}})
      .output("rows", OnnxType::int64, {open, 3, 2, 2});
  write(graph, config("chw"));
  EXPECT_THAT(load_failure().message, HasSubstr("rows are floating-point numbers"));
}

TEST_F(ModelDirectoryTest, AGridInputOfFloats) {
  OnnxBuilder graph = tokens_graph();
  graph.input("grid", OnnxType::float32, {open, 3});
  Json json = config("tokens");
  json["grid_input"] = "grid";
  write(graph, json);
  EXPECT_THAT(load_failure().message, HasSubstr("'grid' takes float32; int32 and int64"));
}

TEST_F(ModelDirectoryTest, AuxiliaryInputsOfAnotherType) {
  for (const auto& [kind, type, message] :
       {std::tuple{"position_ids", OnnxType::float32, "takes float32; int32 and int64"},
        std::tuple{"pos_embed_weight", OnnxType::int64, "takes int64; float32 and float16"}}) {
    OnnxBuilder graph = packed_graph();
    graph.input("extra", type, {open, open});
    Json json = packed_config();
    json["aux_inputs"] = {{"extra", kind}};
    json["aux_params"] = {{"spatial_merge_size", 2}, {"num_grid_per_side", 4}};
    write(graph, json);
    EXPECT_THAT(load_failure(packed_item({1, 2, 2})).message,
                HasSubstr("'extra' " + std::string(message)));
  }
}

TEST_F(ModelDirectoryTest, PreprocessingThatMakesGridsWithoutWholeBlocks) {
  OnnxBuilder graph = packed_graph();
  graph.input("extra", OnnxType::int64, {open, 2});
  Json json = packed_config();
  json["aux_inputs"] = {{"extra", "position_ids"}};
  json["aux_params"] = {{"spatial_merge_size", 2}};
  write(graph, json);
  EXPECT_THAT(load_failure(packed_item({1, 2, 3})).message,
              HasSubstr("2 by 3 patches does not divide into blocks of 2"));
}

TEST_F(ModelDirectoryTest, AnAuxiliaryInputThatTheGraphDoesNotHave) {
  Json json = packed_config();
  json["aux_inputs"] = {{"ends", "cu_seqlens"}};
  write(packed_graph(), json);
  EXPECT_THAT(load_failure(packed_item({1, 2, 2})).message,
              HasSubstr("the graph has no input 'ends'"));
}

TEST_F(ModelDirectoryTest, APackedLayoutWithoutGrids) {
  write(packed_graph(), packed_config());
  EXPECT_THAT(load_failure(float_item({4, 2}, counting(8))).message,
              HasSubstr("needs grids, which preprocessing family 'fixed' does not make"));
}

TEST_F(ModelDirectoryTest, PreprocessingThatMakesAnotherShape) {
  write(tokens_graph(), config("tokens"));
  EXPECT_THAT(load_failure(float_item({3, 5, 5}, counting(75))).message,
              HasSubstr("preprocessing made a tensor of [3,5,5]"));
}

TEST_F(ModelDirectoryTest, AModelThatGivesNoRows) {
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

TEST_F(ModelDirectoryTest, FilesThatAreMissingEmptyOrNoModels) {
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

TEST_F(ModelDirectoryTest, AModelDirectoryWithoutAPreprocessor) {
  write(tokens_graph(), config("tokens"));
  const Failure failure =
      failure_of([&] { make_encoder(directory_.path().string(), onnx_options()); });
  EXPECT_EQ(failure.code, ErrorCode::invalid_argument);
  EXPECT_THAT(failure.message, HasSubstr("no preprocessor_config.json"));
}

TEST_F(ModelDirectoryTest, AnExecutionProviderThatTheLibraryDoesNotOffer) {
  write(tokens_graph(), config("tokens"));
  EncoderOptions options = onnx_options();
  options.execution_provider = "abacus";
  const Failure failure = failure_of([&] { load(small_item(), options); });
  EXPECT_EQ(failure.code, ErrorCode::invalid_argument);
  EXPECT_THAT(failure.message, HasSubstr("'abacus' is not in this ONNX Runtime, which offers: "));
  EXPECT_THAT(failure.message, HasSubstr("cpu"));
}

TEST_F(ModelDirectoryTest, AnExecutionProviderUnderItsFullNameIsTheSameOne) {
  write(tokens_graph(), config("tokens"));
  EncoderOptions options = onnx_options();
  options.execution_provider = "CPUExecutionProvider";
  EXPECT_EQ(load(small_item(), options)->info().fingerprint, load()->info().fingerprint);
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

// Does something to the directory while the model is loaded: the probe comes after the weights are
// read and before they are hashed.
class MeddlingPreprocessor final : public Preprocessor {
 public:
  explicit MeddlingPreprocessor(std::function<void()> meddle) : meddle_(std::move(meddle)) {}
  std::string_view family() const override { return "fixed"; }
  ResolvedParams resolve(Modality, std::string_view) const override { return {}; }
  std::uint64_t bytes_beside(std::uint32_t, std::uint32_t, const ResolvedParams&) const override {
    return 0;
  }
  PreprocessedItem run(const RgbImage&, const ResolvedParams&) const override {
    meddle_();
    return small_item();
  }
  std::vector<PipelineVersion> versions() const override { return {}; }

 private:
  std::function<void()> meddle_;
};

TEST_F(FingerprintTest, WeightsThatAreReplacedWhileTheyAreLoadedAreRefused) {
  const auto load_while = [this](const std::function<void()>& meddle) {
    return std::make_unique<OnnxEncoder>(directory_.path(), onnx_options(),
                                         std::make_unique<MeddlingPreprocessor>(meddle));
  };
  const auto put_in_place = [this](const std::string& name, const std::string& content) {
    write_file(directory_.path() / "next", content);
    std::filesystem::rename(directory_.path() / "next", directory_.path() / name);
  };
  const std::vector<float> next_weights{1, 2, 3, 5};
  const std::string weights = raw_bytes(std::span<const float>(next_weights));
  write(weighted_graph(), config("tokens"));
  write_weights({1, 2, 3, 4});
  EXPECT_NO_THROW(load_while([] {}));

  for (const std::string name : {"model.onnx", "weights.data"}) {
    const std::string content = name == "model.onnx" ? weighted_graph().model() : weights;
    const auto failure = failure_of([&] { load_while([&] { put_in_place(name, content); }); });
    EXPECT_EQ(failure.code, ErrorCode::invalid_argument) << name;
    EXPECT_EQ(failure.message, "the model's files changed while they were loaded") << name;
    EXPECT_THAT(failure.detail, HasSubstr(name));
    EXPECT_NO_THROW(load_while([] {})) << "the next try is about the new files alone";
  }
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
  Json other_windows = config("tokens");
  other_windows["aux_params"] = {{"window_size", 112}};
  EXPECT_NE(fingerprint(other_windows), base);
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
