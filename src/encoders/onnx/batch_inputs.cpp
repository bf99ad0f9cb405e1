#include "encoders/onnx/batch_inputs.h"

#include <algorithm>
#include <utility>

#include "vitrove/error.h"
#include "vitrove/half.h"

namespace vitrove {
namespace {

std::span<const float> floats_of(const PreprocessedItem& item) {
  const Tensor& tensor = item.primary();
  if (!std::holds_alternative<std::vector<float>>(tensor.data)) {
    throw Error(ErrorCode::internal, "the preprocessed tensor is not float32");
  }
  return tensor.floats();
}

std::size_t total_floats(Batch batch) {
  std::size_t total = 0;
  for (const PreprocessedItem* item : batch) total += floats_of(*item).size();
  return total;
}

// Writes `from` as elements of the graph's type and returns the bytes behind it.
std::byte* write_floats(std::span<const float> from, ElementType type, std::byte* to) {
  const DType dtype = type == ElementType::float16 ? DType::float16 : DType::float32;
  const std::size_t bytes = from.size() * element_size(dtype);
  float32_to_rows(from, dtype, {to, bytes});
  return to + bytes;
}

void fill_floats(Batch batch, InputTensor& input) {
  if (batch.size() == 1 && input.type == ElementType::float32) {
    input.bytes = std::as_bytes(floats_of(*batch.front()));
    return;
  }
  const std::size_t element = input.type == ElementType::float16 ? 2 : 4;
  input.owned.resize(total_floats(batch) * element);
  std::byte* to = input.owned.data();
  for (const PreprocessedItem* item : batch) to = write_floats(floats_of(*item), input.type, to);
  input.bytes = input.owned;
}

InputTensor integer_tensor(std::span<const std::int64_t> values, std::vector<std::int64_t> shape,
                           const std::string& name, ElementType type) {
  InputTensor input;
  input.name = name;
  input.type = type;
  input.shape = std::move(shape);
  if (type == ElementType::int64) {
    const auto bytes = std::as_bytes(values);
    input.owned.assign(bytes.begin(), bytes.end());
  } else {
    const std::vector<std::int32_t> narrow(values.begin(), values.end());
    const auto bytes = std::as_bytes(std::span(narrow));
    input.owned.assign(bytes.begin(), bytes.end());
  }
  input.bytes = input.owned;
  return input;
}

// The patch counts of all segments of a batch.
std::vector<std::int64_t> segment_sizes(Batch batch) {
  std::vector<std::int64_t> sizes;
  for (const PreprocessedItem* item : batch) {
    const Grid& grid = required_grid(*item);
    sizes.insert(sizes.end(), grid.t, std::int64_t{grid.h} * grid.w);
  }
  return sizes;
}

InputTensor cu_seqlens(Batch batch, const std::string& name, ElementType type) {
  std::vector<std::int64_t> ends{0};
  for (const std::int64_t size : segment_sizes(batch)) ends.push_back(ends.back() + size);
  return integer_tensor(ends, {static_cast<std::int64_t>(ends.size())}, name, type);
}

InputTensor segment_ids(Batch batch, const std::string& name, ElementType type) {
  std::vector<std::int64_t> ids;
  std::int64_t segment = 0;
  for (const std::int64_t size : segment_sizes(batch)) {
    ids.insert(ids.end(), static_cast<std::size_t>(size), segment++);
  }
  return integer_tensor(ids, {static_cast<std::int64_t>(ids.size())}, name, type);
}

}  // namespace

bool is_supported(AuxInput kind) {
  return kind == AuxInput::cu_seqlens || kind == AuxInput::segment_ids;
}

std::uint64_t patch_count(const Grid& grid) { return std::uint64_t{grid.t} * grid.h * grid.w; }

const Grid& required_grid(const PreprocessedItem& item) {
  if (!item.grid) {
    throw Error(ErrorCode::internal, "the model needs a grid and preprocessing made none");
  }
  return *item.grid;
}

InputTensor stack_items(Batch batch, const std::string& name, ElementType type) {
  InputTensor input;
  input.name = name;
  input.type = type;
  const auto& shape = batch.front()->primary().shape;
  for (const PreprocessedItem* item : batch) {
    if (item->primary().shape != shape) {
      throw Error(ErrorCode::internal, "items of different shapes in one batch");
    }
  }
  input.shape.push_back(static_cast<std::int64_t>(batch.size()));
  input.shape.insert(input.shape.end(), shape.begin(), shape.end());
  fill_floats(batch, input);
  return input;
}

InputTensor pack_items(Batch batch, const std::string& name, ElementType type) {
  InputTensor input;
  input.name = name;
  input.type = type;
  input.shape = batch.front()->primary().shape;
  if (input.shape.empty()) throw Error(ErrorCode::internal, "a packed tensor needs a rank");
  input.shape.front() = 0;
  for (const PreprocessedItem* item : batch) {
    const auto& shape = item->primary().shape;
    if (shape.size() != input.shape.size() ||
        !std::equal(shape.begin() + 1, shape.end(), input.shape.begin() + 1)) {
      throw Error(ErrorCode::internal, "patches of different sizes in one batch");
    }
    if (item->grid && patch_count(*item->grid) != static_cast<std::uint64_t>(shape.front())) {
      throw Error(ErrorCode::internal, "an item's patches and its grid disagree");
    }
    input.shape.front() += shape.front();
  }
  fill_floats(batch, input);
  return input;
}

InputTensor grid_tensor(Batch batch, const std::string& name, ElementType type) {
  std::vector<std::int64_t> values;
  for (const PreprocessedItem* item : batch) {
    const Grid& grid = required_grid(*item);
    values.insert(values.end(), {grid.t, grid.h, grid.w});
  }
  return integer_tensor(values, {static_cast<std::int64_t>(batch.size()), 3}, name, type);
}

InputTensor aux_tensor(AuxInput kind, Batch batch, const std::string& name, ElementType type) {
  if (kind == AuxInput::cu_seqlens) return cu_seqlens(batch, name, type);
  if (kind == AuxInput::segment_ids) return segment_ids(batch, name, type);
  throw Error(ErrorCode::invalid_argument, "auxiliary input '" + std::string(to_string(kind)) +
                                               "' is not supported yet by this build");
}

}  // namespace vitrove
