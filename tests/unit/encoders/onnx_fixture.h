// Model directories made for the purpose: each graph moves numbers around and does no arithmetic
// that rounds, so that rows can be foretold exactly.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "encoders/onnx/onnx_encoder.h"
#include "onnx_builder.h"
#include "sample.h"
#include "support.h"

namespace vitrove::test {

using Json = nlohmann::json;

constexpr std::int64_t open = -1;

// Makes one and the same item of every picture.
class FixedPreprocessor final : public Preprocessor {
 public:
  explicit FixedPreprocessor(PreprocessedItem item, std::string family = "fixed")
      : item_(std::move(item)), family_(std::move(family)) {}
  std::string_view family() const override { return family_; }
  ResolvedParams resolve(Modality, std::string_view) const override { return {}; }
  std::uint64_t bytes_beside(std::uint32_t, std::uint32_t, const ResolvedParams&) const override {
    return 0;
  }
  PreprocessedItem run(const RgbImage&, const ResolvedParams&) const override { return item_; }
  std::vector<PipelineVersion> versions() const override { return {}; }

 private:
  PreprocessedItem item_;
  std::string family_;
};

// [3, 2, 2], counting from `first`.
inline PreprocessedItem small_item(float first = 0) {
  return float_item({3, 2, 2}, counting(12, first));
}

inline PreprocessedItem packed_item(Grid grid, float first = 0) {
  const auto patches = static_cast<std::size_t>(grid.t) * grid.h * grid.w;
  auto item = float_item({static_cast<std::int64_t>(patches), 2}, counting(2 * patches, first));
  item.grid = grid;
  return item;
}

inline Json config(const std::string& layout) {
  return {{"modality", "image"}, {"input", "pixel_values"}, {"output", "rows"}, {"layout", layout}};
}

inline Json packed_config() {
  Json json = config("packed");
  json["grid_input"] = "grid";
  return json;
}

// Channels of each place become a row: [N,3,2,2] to [N,4,3].
inline OnnxBuilder tokens_graph(const Shape& input = {open, 3, 2, 2},
                                const Shape& output = {open, 4, 3}) {
  OnnxBuilder graph;
  graph.input("pixel_values", OnnxType::float32, input)
      .constant("flat_shape", {3}, std::vector<std::int64_t>{0, 3, -1})
      .node("Reshape", {"pixel_values", "flat_shape"}, "flat")
      .node("Transpose", {"flat"}, "rows", {{"perm", {0, 2, 1}}})
      .output("rows", OnnxType::float32, output);
  return graph;
}

inline OnnxBuilder chw_graph() {
  OnnxBuilder graph;
  graph.input("pixel_values", OnnxType::float32, {open, 3, open, open})
      .node("Identity", {"pixel_values"}, "rows")
      .output("rows", OnnxType::float32, {open, 3, open, open});
  return graph;
}

// Two patches of two numbers make a row of four; "grid_seen" shows what the grid input got.
inline OnnxBuilder packed_graph() {
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
    EXPECT_THAT(failure.message, ::testing::Not(::testing::HasSubstr(directory_.path().string())));
    return failure;
  }

  TemporaryDirectory directory_;
};

}  // namespace vitrove::test
