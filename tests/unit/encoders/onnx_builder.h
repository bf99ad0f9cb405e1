// Writes small ONNX files, so that each test can have the very graph that it speaks of: the fields
// of onnx.proto that these need, in protobuf's wire format.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrove::test {

// A protobuf message under construction.
class Message {
 public:
  Message& number(std::uint32_t field, std::int64_t value) {
    varint(field << 3);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  Message& text(std::uint32_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& nested(std::uint32_t field, const Message& value) { return text(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

// onnx.TensorProto.DataType
enum class OnnxType { float32 = 1, uint8 = 2, int32 = 6, int64 = 7, float16 = 10, bfloat16 = 16 };

// Open dimensions are -1.
using Shape = std::vector<std::int64_t>;

inline Message tensor_head(std::string_view name, OnnxType type, const Shape& shape) {
  Message tensor;
  for (const std::int64_t size : shape) tensor.number(1, size);
  tensor.number(2, static_cast<int>(type)).text(8, name);
  return tensor;
}

template <typename Number>
std::string raw_bytes(std::span<const Number> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

class OnnxBuilder {
 public:
  OnnxBuilder& input(std::string_view name, OnnxType type, const Shape& shape) {
    graph_.nested(11, value_info(name, type, shape));
    return *this;
  }
  OnnxBuilder& output(std::string_view name, OnnxType type, const Shape& shape) {
    graph_.nested(12, value_info(name, type, shape));
    return *this;
  }
  OnnxBuilder& output_of_unknown_rank(std::string_view name, OnnxType type) {
    Message tensor_type;
    tensor_type.number(1, static_cast<int>(type));
    graph_.nested(12, Message().text(1, name).nested(2, Message().nested(1, tensor_type)));
    return *this;
  }

  OnnxBuilder& constant(std::string_view name, const Shape& shape,
                        const std::vector<std::int64_t>& values) {
    graph_.nested(5, tensor_head(name, OnnxType::int64, shape)
                         .text(9, raw_bytes(std::span<const std::int64_t>(values))));
    return *this;
  }
  OnnxBuilder& constant(std::string_view name, const Shape& shape,
                        const std::vector<float>& values) {
    graph_.nested(5, tensor_head(name, OnnxType::float32, shape)
                         .text(9, raw_bytes(std::span<const float>(values))));
    return *this;
  }
  // float32 numbers in another file, from its start.
  OnnxBuilder& external_constant(std::string_view name, const Shape& shape,
                                 std::string_view location) {
    graph_.nested(5, external_tensor(name, shape, location));
    return *this;
  }

  struct Attribute {
    std::string name;
    std::vector<std::int64_t> integers;  // one: an integer; several: a list
    bool is_list = true;
  };

  OnnxBuilder& node(std::string_view op, const std::vector<std::string>& inputs,
                    std::string_view output, const std::vector<Attribute>& attributes = {}) {
    Message node;
    for (const std::string& input : inputs) node.text(1, input);
    node.text(2, output).text(3, output).text(4, op);
    for (const Attribute& attribute : attributes) {
      constexpr int integer_type = 2, integers_type = 7;
      Message message;
      message.text(1, attribute.name);
      for (const std::int64_t value : attribute.integers) {
        message.number(attribute.is_list ? 8 : 3, value);
      }
      message.number(20, attribute.is_list ? integers_type : integer_type);
      node.nested(5, message);
    }
    return raw_node(node);
  }
  OnnxBuilder& raw_node(const Message& node) {
    graph_.nested(1, node);
    return *this;
  }

  static Message external_tensor(std::string_view name, const Shape& shape,
                                 std::string_view location) {
    constexpr int external = 1;
    return tensor_head(name, OnnxType::float32, shape)
        .nested(13, Message().text(1, "location").text(2, location))
        .number(14, external);
  }

  // The graph alone, for nesting.
  const Message& graph() const { return graph_; }

  // The whole file.
  std::string model() const {
    Message graph = graph_;
    graph.text(2, "test");
    return Message()
        .number(1, 8)
        .nested(8, Message().text(1, "").number(2, 17))
        .nested(7, graph)
        .bytes();
  }

 private:
  static Message value_info(std::string_view name, OnnxType type, const Shape& shape) {
    Message dimensions;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      Message dimension;
      if (shape[i] >= 0) {
        dimension.number(1, shape[i]);
      } else {
        dimension.text(2, std::string(name) + "_" + std::to_string(i));
      }
      dimensions.nested(1, dimension);
    }
    Message tensor_type;
    tensor_type.number(1, static_cast<int>(type)).nested(2, dimensions);
    return Message().text(1, name).nested(2, Message().nested(1, tensor_type));
  }

  Message graph_;
};

}  // namespace vitrove::test
