// What packed towers need of their grids, by the word of transformers' own functions
// (tests/data/towers/grid_inputs.json, made by tests/data/make_tower_fixtures.py).
#include "encoders/onnx/grid_indices.h"

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "encoders/onnx/batch_inputs.h"
#include "support.h"
#include "support/paths.h"

namespace vitrove::test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using Json = nlohmann::json;
using Integers = std::vector<std::int64_t>;

Json reference() {
  std::ifstream file(source_dir() / "tests/data/towers/grid_inputs.json");
  return Json::parse(file);
}

std::vector<Grid> grids_of(const Json& json) {
  std::vector<Grid> grids;
  for (const auto& grid : json) grids.push_back({grid.at(0), grid.at(1), grid.at(2)});
  return grids;
}

TEST(GridIndices, PositionsAreThoseOfTheReference) {
  const Json cases = reference().at("position_ids");
  ASSERT_GE(cases.size(), 3U);
  for (const Json& item : cases) {
    EXPECT_EQ(patch_positions(grids_of(item.at("grids")), item.at("spatial_merge_size")),
              item.at("expected").get<Integers>())
        << item.at("grids");
  }
}

TEST(GridIndices, WindowOrderIsThatOfTheReference) {
  const Json cases = reference().at("window_index");
  ASSERT_GE(cases.size(), 3U);
  for (const Json& item : cases) {
    const AuxParams params{item.at("spatial_merge_size"), item.at("window_size"),
                           item.at("patch_size"), 0};
    EXPECT_EQ(
        window_order(grids_of(item.at("grids")), params.spatial_merge_size, params.window_side()),
        item.at("expected").get<Integers>())
        << item.at("grids");
  }
}

// How much of each learned position each patch gets. Neighbours alone say less: a place that rounds
// to either side of a learned one has others, but the same mixture.
std::vector<float> mixtures(const StretchedPositions& positions, std::size_t learned) {
  const std::size_t patches = positions.index.size() / 4;
  std::vector<float> mixed(patches * learned);
  for (std::size_t i = 0; i < positions.index.size(); ++i) {
    mixed[i % patches * learned + static_cast<std::size_t>(positions.index[i])] +=
        positions.weight[i];
  }
  return mixed;
}

TEST(GridIndices, StretchedPositionsAreThoseOfTheReference) {
  const Json cases = reference().at("pos_embed");
  ASSERT_GE(cases.size(), 3U);
  for (const Json& item : cases) {
    const std::uint32_t side = item.at("num_grid_per_side");
    const auto ours =
        stretched_positions(grids_of(item.at("grids")), item.at("spatial_merge_size"), side);
    EXPECT_THAT(mixtures(ours, std::size_t{side} * side),
                ::testing::Pointwise(::testing::FloatNear(1e-5F),
                                     item.at("expected").get<std::vector<float>>()))
        << item.at("grids");
  }
}

TEST(GridIndices, AGridOfOnePatchHasTheFirstLearnedPosition) {
  const auto positions = stretched_positions(std::vector<Grid>{{1, 1, 1}}, 1, 5);
  EXPECT_EQ(positions.index.front(), 0);
  EXPECT_THAT(positions.weight, ElementsAre(1, 0, 0, 0));
}

TEST(GridIndices, TheLastPatchHasTheLastLearnedPosition) {
  for (const std::uint32_t count : {2U, 3U, 7U, 46U, 47U, 48U, 49U, 94U, 95U, 96U, 131U}) {
    const auto positions = stretched_positions(std::vector<Grid>{{1, count, count}}, 1, 48);
    const std::size_t patches = std::size_t{count} * count;
    EXPECT_EQ(positions.index[patches - 1], 48 * 48 - 1);
    EXPECT_THAT(positions.weight[patches - 1], FloatEq(1));
    EXPECT_THAT(positions.index, Each(::testing::Lt(48 * 48)));
  }
}

TEST(GridIndices, AGridThatDoesNotDivideIntoBlocksIsRefused) {
  for (const Grid grid : {Grid{1, 3, 4}, Grid{1, 4, 3}}) {
    const std::vector grids{grid};
    EXPECT_EQ(failure_of([&] { patch_positions(grids, 2); }).code, ErrorCode::internal);
    EXPECT_EQ(failure_of([&] { window_order(grids, 2, 4); }).code, ErrorCode::internal);
    EXPECT_EQ(failure_of([&] { stretched_positions(grids, 2, 8); }).code, ErrorCode::internal);
  }
}

TEST(AuxTensor, HasTheShapeOfItsKind) {
  auto item = float_item({8, 2}, counting(16));
  item.grid = Grid{2, 2, 2};
  const PreprocessedItem* const batch[] = {&item, &item};
  const AuxParams params{2, 8, 2, 4};
  const auto shape_of = [&](AuxInput kind, ElementType type) {
    const InputTensor tensor = aux_tensor(kind, params, batch, "aux", type);
    std::size_t elements = type == ElementType::int64 ? 8 : type == ElementType::float16 ? 2 : 4;
    for (const std::int64_t size : tensor.shape) elements *= static_cast<std::size_t>(size);
    EXPECT_EQ(tensor.bytes.size(), elements);
    EXPECT_EQ(tensor.type, type);
    return tensor.shape;
  };
  EXPECT_THAT(shape_of(AuxInput::cu_seqlens, ElementType::int32), ElementsAre(5));
  EXPECT_THAT(shape_of(AuxInput::segment_ids, ElementType::int64), ElementsAre(16));
  EXPECT_THAT(shape_of(AuxInput::position_ids, ElementType::int64), ElementsAre(16, 2));
  EXPECT_THAT(shape_of(AuxInput::window_index, ElementType::int32), ElementsAre(4));
  EXPECT_THAT(shape_of(AuxInput::pos_embed_index, ElementType::int64), ElementsAre(4, 16));
  EXPECT_THAT(shape_of(AuxInput::pos_embed_weight, ElementType::float32), ElementsAre(4, 16));
  EXPECT_THAT(shape_of(AuxInput::pos_embed_weight, ElementType::float16), ElementsAre(4, 16));
}

}  // namespace
}  // namespace vitrove::test
