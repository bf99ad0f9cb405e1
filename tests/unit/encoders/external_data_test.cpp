#include "encoders/onnx/external_data.h"

#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx_builder.h"
#include "support.h"

namespace vitrove::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::set<std::string> locations(const std::string& model) {
  return external_data_locations(std::as_bytes(std::span(model)));
}

TEST(ExternalData, AModelWithItsWeightsInsideNamesNoFiles) {
  OnnxBuilder builder;
  builder.constant("w", {2}, std::vector<float>{1, 2});
  EXPECT_THAT(locations(builder.model()), IsEmpty());
}

TEST(ExternalData, EachFileIsNamedOnce) {
  OnnxBuilder builder;
  builder.external_constant("a", {4}, "weights.data");
  builder.external_constant("b", {4}, "weights.data");
  builder.external_constant("c", {4}, "more/weights.bin");
  EXPECT_THAT(locations(builder.model()), ElementsAre("more/weights.bin", "weights.data"));
}

TEST(ExternalData, TensorsInNodesSubgraphsFunctionsAndSparsePairsAreFound) {
  const Message tensor = OnnxBuilder::external_tensor("t", {1}, "attribute.data");
  OnnxBuilder inner;
  inner.external_constant("x", {1}, "subgraph.data");
  Message node;
  node.nested(5, Message().text(1, "value").nested(5, tensor));
  node.nested(5, Message().text(1, "body").nested(6, inner.graph()));
  OnnxBuilder builder;
  builder.raw_node(node);

  const Message sparse =
      Message().nested(1, OnnxBuilder::external_tensor("values", {1}, "sparse_values.data"));
  const Message graph_with_sparse = Message().nested(15, sparse);
  const Message function = Message().nested(
      7, Message().nested(
             5, Message().nested(10, OnnxBuilder::external_tensor("f", {1}, "function.data"))));
  const std::string model =
      builder.model() + Message().nested(25, function).nested(7, graph_with_sparse).bytes();

  EXPECT_THAT(locations(model), ElementsAre("attribute.data", "function.data", "sparse_values.data",
                                            "subgraph.data"));
}

TEST(ExternalData, OtherEntriesThanTheLocationAreNoFiles) {
  Message tensor = tensor_head("w", OnnxType::float32, {1});
  tensor.nested(13, Message().text(1, "offset").text(2, "4096"));
  tensor.nested(13, Message().text(1, "location").text(2, "weights.data"));
  const std::string model = Message().nested(7, Message().nested(5, tensor)).bytes();
  EXPECT_THAT(locations(model), ElementsAre("weights.data"));
}

TEST(ExternalData, NoCutOrFlippedByteCrashesTheWalk) {
  OnnxBuilder inner;
  inner.external_constant("x", {1}, "inner.data");
  OnnxBuilder builder;
  builder.external_constant("w", {300}, "weights.data");
  builder.raw_node(Message().nested(5, Message().nested(6, inner.graph())));
  const std::string model = builder.model();

  const auto walk = [](const std::string& bytes) {
    try {
      locations(bytes);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  };
  for (std::size_t length = 0; length < model.size(); ++length) walk(model.substr(0, length));
  for (std::size_t i = 0; i < model.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = model;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      walk(damaged);
    }
  }
}

TEST(ExternalData, SubgraphsNestedWithoutEndAreRefused) {
  Message graph;
  for (int depth = 0; depth < 2000; ++depth) {
    graph = Message().nested(1, Message().nested(5, Message().nested(6, graph)));
  }
  const std::string model = Message().nested(7, graph).bytes();
  EXPECT_EQ(failure_of([&] { locations(model); }).code, ErrorCode::invalid_argument);
}

TEST(ExternalData, WhatIsNoProtobufIsRefused) {
  EXPECT_EQ(failure_of([] { locations("<!DOCTYPE html><html></html>"); }).code,
            ErrorCode::invalid_argument);
}

TEST(ExternalData, OnlyRelativePathsBelowTheDirectoryAreSafe) {
  EXPECT_TRUE(is_safe_location("weights.data"));
  EXPECT_TRUE(is_safe_location("parts/weights.data"));
  for (const std::string location :
       {"", "/etc/passwd", "../weights.data", "parts/../../weights.data", ".."}) {
    EXPECT_FALSE(is_safe_location(location)) << location;
  }
  EXPECT_FALSE(is_safe_location(std::string("a\0b", 3)));
}

}  // namespace
}  // namespace vitrove::test
