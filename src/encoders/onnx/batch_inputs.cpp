#include "encoders/onnx/batch_inputs.h"

#include <algorithm>
#include <utility>

#include "encoders/onnx/grid_indices.h"
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

InputTensor tensor_head(const std::string& name, std::vector<std::int64_t> shape,
                        ElementType type) {
  InputTensor input;
  input.name = name;
  input.type = type;
  input.shape = std::move(shape);
  return input;
}

InputTensor integer_tensor(std::span<const std::int64_t> values, std::vector<std::int64_t> shape,
                           const std::string& name, ElementType type) {
  InputTensor input = tensor_head(name, std::move(shape), type);
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

InputTensor float_tensor(std::span<const float> values, std::vector<std::int64_t> shape,
                         const std::string& name, ElementType type) {
  InputTensor input = tensor_head(name, std::move(shape), type);
  input.owned.resize(values.size() * (type == ElementType::float16 ? 2 : 4));
  write_floats(values, type, input.owned.data());
  input.bytes = input.owned;
  return input;
}

std::vector<Grid> grids_of(Batch batch) {
  std::vector<Grid> grids;
  grids.reserve(batch.size());
  for (const PreprocessedItem* item : batch) grids.push_back(required_grid(*item));
  return grids;
}

// The patch counts of all segments of a batch.
std::vector<std::int64_t> segment_sizes(std::span<const Grid> grids) {
  std::vector<std::int64_t> sizes;
  for (const Grid& grid : grids) {
    sizes.insert(sizes.end(), grid.t, std::int64_t{grid.h} * grid.w);
  }
  return sizes;
}

std::vector<std::int64_t> segment_ends(std::span<const Grid> grids) {
  std::vector<std::int64_t> ends{0};
  for (const std::int64_t size : segment_sizes(grids)) ends.push_back(ends.back() + size);
  return ends;
}

std::vector<std::int64_t> segment_numbers(std::span<const Grid> grids) {
  std::vector<std::int64_t> numbers;
  std::int64_t segment = 0;
  for (const std::int64_t size : segment_sizes(grids)) {
    numbers.insert(numbers.end(), static_cast<std::size_t>(size), segment++);
  }
  return numbers;
}

std::vector<std::int64_t> aux_integers(AuxInput kind, const AuxParams& params,
                                       std::span<const Grid> grids) {
  const std::uint32_t merge = params.spatial_merge_size;
  switch (kind) {
    case AuxInput::position_ids:
      return patch_positions(grids, merge);
    case AuxInput::cu_seqlens:
      return segment_ends(grids);
    case AuxInput::segment_ids:
      return segment_numbers(grids);
    case AuxInput::window_index:
      return window_order(grids, merge, params.window_side());
    case AuxInput::pos_embed_index:
      return stretched_positions(grids, merge, params.num_grid_per_side).index;
    case AuxInput::pos_embed_weight:
      break;
  }
  return {};
}

// Of `count` numbers.
std::vector<std::int64_t> aux_shape(AuxInput kind, std::size_t count) {
  const auto all = static_cast<std::int64_t>(count);
  if (kind == AuxInput::position_ids) return {all / 2, 2};
  if (kind == AuxInput::pos_embed_index || kind == AuxInput::pos_embed_weight) return {4, all / 4};
  return {all};
}

}  // namespace

std::uint64_t patch_count(const Grid& grid) { return std::uint64_t{grid.t} * grid.h * grid.w; }

const Grid& required_grid(const PreprocessedItem& item) {
  if (!item.grid) {
    throw Error(ErrorCode::internal, "the model needs a grid and preprocessing made none");
  }
  return *item.grid;
}

InputTensor stack_items(Batch batch, const std::string& name, ElementType type) {
  InputTensor input = tensor_head(name, {}, type);
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
  InputTensor input = tensor_head(name, batch.front()->primary().shape, type);
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

InputTensor aux_tensor(AuxInput kind, const AuxParams& params, Batch batch, const std::string& name,
                       ElementType type) {
  const auto grids = grids_of(batch);
  if (kind == AuxInput::pos_embed_weight) {
    const auto weights =
        stretched_positions(grids, params.spatial_merge_size, params.num_grid_per_side).weight;
    return float_tensor(weights, aux_shape(kind, weights.size()), name, type);
  }
  const auto values = aux_integers(kind, params, grids);
  return integer_tensor(values, aux_shape(kind, values.size()), name, type);
}

}  // namespace vitrove
