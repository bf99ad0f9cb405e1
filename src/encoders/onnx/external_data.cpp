// The wire format of protobuf is a sequence of fields, each a key (field number and wire type) and
// a value; only nested messages and strings matter here. The field numbers are those of onnx.proto,
// which never change.
#include "encoders/onnx/external_data.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "vitrove/error.h"

namespace vitrove {
namespace {

// Subgraphs nest; real models a handful deep, and the stack is finite.
constexpr int max_depth = 64;

[[noreturn]] void refuse() {
  throw Error(ErrorCode::invalid_argument, "model.onnx is damaged or not an ONNX file");
}

using Bytes = std::span<const std::byte>;

struct Field {
  std::uint64_t number = 0;
  Bytes bytes;  // of length-delimited fields; empty for numbers
};

class FieldReader {
 public:
  explicit FieldReader(Bytes message) : rest_(message) {}

  std::optional<Field> next() {
    if (rest_.empty()) return std::nullopt;
    const std::uint64_t key = varint();
    Field field{key >> 3, {}};
    switch (key & 7) {
      case 0:
        varint();
        return field;
      case 1:
        take(8);
        return field;
      case 2:
        field.bytes = take(varint());
        return field;
      case 5:
        take(4);
        return field;
      default:
        refuse();  // groups are not used by ONNX
    }
  }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = std::to_integer<std::uint64_t>(take(1)[0]);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    refuse();
  }

  Bytes take(std::uint64_t count) {
    if (count > rest_.size()) refuse();
    const Bytes taken = rest_.first(static_cast<std::size_t>(count));
    rest_ = rest_.subspan(static_cast<std::size_t>(count));
    return taken;
  }

  Bytes rest_;
};

std::string_view text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class LocationCollector {
 public:
  void model(Bytes message) {
    constexpr std::uint64_t graph_field = 7, functions_field = 25;
    FieldReader reader(message);
    while (const auto field = reader.next()) {
      if (field->number == graph_field) graph(field->bytes, 0);
      if (field->number == functions_field) function(field->bytes);
    }
  }

  std::set<std::string> take() { return std::move(locations_); }

 private:
  void graph(Bytes message, int depth) {
    constexpr std::uint64_t node_field = 1, initializer_field = 5, sparse_field = 15;
    if (depth > max_depth) refuse();
    FieldReader reader(message);
    while (const auto field = reader.next()) {
      if (field->number == node_field) node(field->bytes, depth);
      if (field->number == initializer_field) tensor(field->bytes);
      if (field->number == sparse_field) sparse_tensor(field->bytes);
    }
  }

  void function(Bytes message) {
    constexpr std::uint64_t node_field = 7, attribute_field = 11;
    FieldReader reader(message);
    while (const auto field = reader.next()) {
      if (field->number == node_field) node(field->bytes, 0);
      if (field->number == attribute_field) attribute(field->bytes, 0);
    }
  }

  void node(Bytes message, int depth) {
    constexpr std::uint64_t attribute_field = 5;
    FieldReader reader(message);
    while (const auto field = reader.next()) {
      if (field->number == attribute_field) attribute(field->bytes, depth);
    }
  }

  void attribute(Bytes message, int depth) {
    constexpr std::uint64_t tensor_field = 5, graph_field = 6, tensors_field = 10;
    constexpr std::uint64_t graphs_field = 11, sparse_field = 22, sparse_list_field = 23;
    FieldReader reader(message);
    while (const auto field = reader.next()) {
      switch (field->number) {
        case tensor_field:
        case tensors_field:
          tensor(field->bytes);
          break;
        case graph_field:
        case graphs_field:
          graph(field->bytes, depth + 1);
          break;
        case sparse_field:
        case sparse_list_field:
          sparse_tensor(field->bytes);
          break;
        default:
          break;
      }
    }
  }

  void sparse_tensor(Bytes message) {
    constexpr std::uint64_t values_field = 1, indices_field = 2;
    FieldReader reader(message);
    while (const auto field = reader.next()) {
      if (field->number == values_field || field->number == indices_field) tensor(field->bytes);
    }
  }

  void tensor(Bytes message) {
    constexpr std::uint64_t external_data_field = 13;
    FieldReader reader(message);
    while (const auto field = reader.next()) {
      if (field->number == external_data_field) entry(field->bytes);
    }
  }

  void entry(Bytes message) {
    constexpr std::uint64_t key_field = 1, value_field = 2;
    std::string_view key;
    std::string_view value;
    FieldReader reader(message);
    while (const auto field = reader.next()) {
      if (field->number == key_field) key = text(field->bytes);
      if (field->number == value_field) value = text(field->bytes);
    }
    if (key == "location") locations_.emplace(value);
  }

  std::set<std::string> locations_;
};

}  // namespace

std::set<std::string> external_data_locations(std::span<const std::byte> onnx_model) {
  LocationCollector collector;
  collector.model(onnx_model);
  return collector.take();
}

bool is_safe_location(const std::string& location) {
  if (location.empty() || location.find('\0') != std::string::npos) return false;
  const std::filesystem::path path(location);
  if (path.is_absolute()) return false;
  for (const auto& part : path) {
    if (part == "..") return false;
  }
  return true;
}

}  // namespace vitrove
