#include "encoders/onnx/model_config.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support.h"

namespace vitrove::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Json = nlohmann::json;

Json good() {
  return {{"modality", "image"},
          {"input", "pixel_values"},
          {"output", "rows"},
          {"layout", "tokens"},
          {"dtype", "float32"}};
}

TEST(ModelConfig, EveryFieldIsRead) {
  Json json = good();
  json["modality"] = {"image", "video"};
  json["grid_input"] = "grid_thw";
  json["layout"] = "packed";
  json["aux_inputs"] = {{"cu", "cu_seqlens"}, {"pos", "position_ids"}};
  json["aux_params"] = {{"spatial_merge_size", 2},
                        {"window_size", 112},
                        {"patch_size", 14},
                        {"num_grid_per_side", 48}};
  json["dtype"] = "bfloat16";
  json["name"] = "tower";
  json["revision"] = "v2";
  const ModelConfig config = parse_model_config(json.dump());
  EXPECT_THAT(config.modalities, ElementsAre(Modality::image, Modality::video));
  EXPECT_EQ(config.input, "pixel_values");
  EXPECT_EQ(config.grid_input, "grid_thw");
  EXPECT_EQ(config.output, "rows");
  EXPECT_EQ(config.layout, RowLayout::packed);
  EXPECT_THAT(config.aux_inputs,
              ElementsAre(Pair("cu", AuxInput::cu_seqlens), Pair("pos", AuxInput::position_ids)));
  EXPECT_THAT(config.aux_params.given(),
              ElementsAre(Pair("num_grid_per_side", 48), Pair("patch_size", 14),
                          Pair("spatial_merge_size", 2), Pair("window_size", 112)));
  EXPECT_EQ(config.aux_params.window_side(), 4);
  EXPECT_EQ(config.dtype, DType::bfloat16);
  EXPECT_EQ(config.name, "tower");
  EXPECT_EQ(config.revision, "v2");
}

TEST(ModelConfig, TheRestHasDefaults) {
  Json json = good();
  json.erase("dtype");
  const ModelConfig config = parse_model_config(json.dump());
  EXPECT_THAT(config.modalities, ElementsAre(Modality::image));
  EXPECT_FALSE(config.grid_input);
  EXPECT_TRUE(config.aux_inputs.empty());
  EXPECT_TRUE(config.aux_params.given().empty());
  EXPECT_EQ(config.dtype, DType::float32);
  EXPECT_TRUE(config.revision.empty());
}

struct Mistake {
  const char* name;
  void (*make)(Json&);
  const char* message;  // a part of it
};

class MistakeTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(MistakeTest, IsOneClearLine) {
  Json json = good();
  GetParam().make(json);
  const Failure failure = failure_of([&] { parse_model_config(json.dump()); });
  EXPECT_EQ(failure.code, ErrorCode::invalid_argument);
  EXPECT_THAT(failure.message, HasSubstr(GetParam().message));
  EXPECT_THAT(failure.message, HasSubstr("vitrove.json"));
  EXPECT_TRUE(is_one_line(failure.message));
}

INSTANTIATE_TEST_SUITE_P(
    ModelConfig, MistakeTest,
    ::testing::Values(
        Mistake{"NoObject", [](Json& j) { j = Json::array(); }, "not a JSON object"},
        Mistake{"UnknownField", [](Json& j) { j["ouput"] = "rows"; }, "unknown field 'ouput'"},
        Mistake{"NoModality", [](Json& j) { j.erase("modality"); }, "'modality' is missing"},
        Mistake{"NoInput", [](Json& j) { j.erase("input"); }, "'input' is missing"},
        Mistake{"NoOutput", [](Json& j) { j.erase("output"); }, "'output' is missing"},
        Mistake{"NoLayout", [](Json& j) { j.erase("layout"); }, "'layout' is missing"},
        Mistake{"EmptyInput", [](Json& j) { j["input"] = ""; }, "'input' is empty"},
        Mistake{"InputANumber", [](Json& j) { j["input"] = 1; }, "'input' must be a string"},
        Mistake{"OutputAList", [](Json& j) { j["output"] = {"a"}; }, "'output' must be a string"},
        Mistake{"NameANumber", [](Json& j) { j["name"] = 1; }, "'name' must be a string"},
        Mistake{"RevisionNull", [](Json& j) { j["revision"] = nullptr; },
                "'revision' must be a string"},
        Mistake{"GridInputNull", [](Json& j) { j["grid_input"] = nullptr; },
                "'grid_input' must be a string"},
        Mistake{"UnknownModality", [](Json& j) { j["modality"] = "smell"; },
                "'modality' cannot be 'smell' (known: image, video, audio)"},
        Mistake{"NoModalities", [](Json& j) { j["modality"] = Json::array(); }, "empty list"},
        Mistake{"ModalityTwice",
                [](Json& j) {
                  j["modality"] = {"image", "image"};
                },
                "names 'image' twice"},
        Mistake{"ModalityANumber", [](Json& j) { j["modality"] = 3; },
                "'modality' must be a string or a list of strings"},
        Mistake{"ModalityListOfNumbers", [](Json& j) { j["modality"] = {3}; },
                "'modality' must be a string or a list of strings"},
        Mistake{"UnknownLayout", [](Json& j) { j["layout"] = "nhwc"; },
                "'layout' cannot be 'nhwc' (known: tokens, packed, chw)"},
        Mistake{"UnknownDtype", [](Json& j) { j["dtype"] = "int8"; },
                "'dtype' cannot be 'int8' (known: float32, float16, bfloat16)"},
        Mistake{"AuxInputsAList", [](Json& j) { j["aux_inputs"] = {"cu_seqlens"}; },
                "'aux_inputs' must be an object"},
        Mistake{"UnknownAuxInput",
                [](Json& j) {
                  j["aux_inputs"] = {{"cu", "cu_seqlen"}};
                },
                "'aux_inputs.cu' cannot be 'cu_seqlen' (known: position_ids, cu_seqlens, "
                "segment_ids, window_index, pos_embed_index, pos_embed_weight)"},
        Mistake{"AuxInputANumber",
                [](Json& j) {
                  j["aux_inputs"] = {{"cu", 1}};
                },
                "'aux_inputs.cu' must be a string"},
        Mistake{"AuxParamsAList", [](Json& j) { j["aux_params"] = {2}; },
                "'aux_params' must be an object"},
        Mistake{"UnknownAuxParam",
                [](Json& j) {
                  j["aux_params"] = {{"merge_size", 2}};
                },
                "unknown parameter 'aux_params.merge_size' (known: spatial_merge_size"},
        Mistake{"AuxParamZero",
                [](Json& j) {
                  j["aux_params"] = {{"patch_size", 0}};
                },
                "'aux_params.patch_size' must be a whole number from 1 to 65536"},
        Mistake{"AuxParamAFraction",
                [](Json& j) {
                  j["aux_params"] = {{"patch_size", 1.5}};
                },
                "'aux_params.patch_size' must be a whole number"},
        Mistake{"AuxParamBeyondAllBits",
                [](Json& j) {
                  j["aux_params"] = {{"patch_size", 18446744073709551615U}};
                },
                "'aux_params.patch_size' must be a whole number"},
        Mistake{"PositionsWithoutMergeSize",
                [](Json& j) {
                  j["aux_inputs"] = {{"pos", "position_ids"}};
                },
                "'position_ids' needs 'aux_params.spatial_merge_size'"},
        Mistake{"WindowsWithoutPatchSize",
                [](Json& j) {
                  j["aux_inputs"] = {{"w", "window_index"}};
                  j["aux_params"] = {{"spatial_merge_size", 2}, {"window_size", 112}};
                },
                "'window_index' needs 'aux_params.patch_size'"},
        Mistake{"WindowsSmallerThanABlock",
                [](Json& j) {
                  j["aux_inputs"] = {{"w", "window_index"}};
                  j["aux_params"] = {
                      {"spatial_merge_size", 2}, {"window_size", 20}, {"patch_size", 14}};
                },
                "'aux_params.window_size' is smaller than a block of patches"},
        Mistake{"LearnedPositionsWithoutTheirGrid",
                [](Json& j) {
                  j["aux_inputs"] = {{"w", "pos_embed_weight"}};
                  j["aux_params"] = {{"spatial_merge_size", 2}};
                },
                "'pos_embed_weight' needs 'aux_params.num_grid_per_side'"},
        Mistake{"GridInputTakenTwice", [](Json& j) { j["grid_input"] = "pixel_values"; },
                "'input' and 'grid_input' name one graph input"},
        Mistake{"AuxInputTakenTwice",
                [](Json& j) {
                  j["aux_inputs"] = {{"pixel_values", "cu_seqlens"}};
                },
                "which is fed already"},
        Mistake{"NulInAName", [](Json& j) { j["input"] = std::string("a\0b", 3); },
                "'input' holds a NUL"}),
    [](const auto& test) { return test.param.name; });

TEST(ModelConfig, TextThatIsNoJsonIsOneClearLine) {
  for (const char* text : {"", "{", "{\"input\": }", "\xff\xfe"}) {
    const Failure failure = failure_of([&] { parse_model_config(text); });
    EXPECT_EQ(failure.code, ErrorCode::invalid_argument);
    EXPECT_EQ(failure.message, "vitrove.json: not valid JSON");
    EXPECT_FALSE(failure.detail.empty());
  }
}

TEST(ModelConfig, WithoutANameTheDirectorysIsTaken) {
  const TemporaryDirectory parent;
  const auto directory = parent.path() / "my-tower";
  std::filesystem::create_directory(directory);
  write_file(directory / "vitrove.json", good().dump());
  EXPECT_EQ(load_model_config(directory).name, "my-tower");
  EXPECT_EQ(load_model_config(directory / "").name, "my-tower");
}

TEST(ModelConfig, AMissingFileIsOneClearLineWithoutAPath) {
  const TemporaryDirectory directory;
  const Failure failure = failure_of([&] { load_model_config(directory.path()); });
  EXPECT_EQ(failure.code, ErrorCode::invalid_argument);
  EXPECT_EQ(failure.message, "the model directory has no readable vitrove.json");
  EXPECT_THAT(failure.detail, HasSubstr(directory.path().string()));
}

}  // namespace
}  // namespace vitrove::test
