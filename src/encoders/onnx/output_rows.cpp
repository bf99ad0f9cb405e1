#include "encoders/onnx/output_rows.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "vitrove/error.h"
#include "vitrove/half.h"

namespace vitrove {
namespace {

[[noreturn]] void refuse_output(const std::string& why) {
  throw Error(ErrorCode::internal, "the encoder's output is not as declared: " + why);
}

std::optional<DType> as_dtype(ElementType type) {
  switch (type) {
    case ElementType::float32:
      return DType::float32;
    case ElementType::float16:
      return DType::float16;
    case ElementType::bfloat16:
      return DType::bfloat16;
    default:
      return std::nullopt;
  }
}

DType float_type(const OutputTensor& output) {
  const auto dtype = as_dtype(output.type);
  if (!dtype) refuse_output("its elements are no floating-point numbers");
  return *dtype;
}

void require_rank(const OutputTensor& output, RowLayout layout) {
  if (output.shape.size() == output_rank(layout)) return;
  refuse_output("shape " + describe_shape(output.shape) + " in layout " +
                std::string(to_string(layout)));
}

void require_items(const OutputTensor& output, std::size_t items) {
  if (output.shape.front() == static_cast<std::int64_t>(items)) return;
  refuse_output("shape " + describe_shape(output.shape) + " for " + std::to_string(items) +
                " items");
}

// Rows are counted in 32 bits everywhere.
std::uint32_t row_count(std::uint64_t rows) {
  if (rows == 0) refuse_output("no rows");
  if (rows > std::numeric_limits<std::uint32_t>::max()) refuse_output("too many rows");
  return static_cast<std::uint32_t>(rows);
}

std::vector<std::byte> convert(std::span<const std::byte> from, DType from_type, DType to_type) {
  if (from_type == to_type) return {from.begin(), from.end()};
  std::vector<float> floats(from.size() / element_size(from_type));
  rows_to_float32(from, from_type, floats);
  std::vector<std::byte> to(floats.size() * element_size(to_type));
  float32_to_rows(floats, to_type, to);
  return to;
}

// Both sides of a transposition cannot be read in order; in small squares both stay in cache.
void transpose(std::span<const float> from, std::size_t rows, std::size_t columns,
               std::span<float> to) {
  constexpr std::size_t square = 16;
  for (std::size_t top = 0; top < rows; top += square) {
    const std::size_t bottom = std::min(rows, top + square);
    for (std::size_t left = 0; left < columns; left += square) {
      const std::size_t right = std::min(columns, left + square);
      for (std::size_t row = top; row < bottom; ++row) {
        for (std::size_t column = left; column < right; ++column) {
          to[column * rows + row] = from[row * columns + column];
        }
      }
    }
  }
}

std::vector<std::byte> feature_map_rows(std::span<const std::byte> map, DType from_type,
                                        std::size_t channels, DType to_type) {
  std::vector<float> floats(map.size() / element_size(from_type));
  rows_to_float32(map, from_type, floats);
  std::vector<float> turned(floats.size());
  transpose(floats, channels, floats.size() / channels, turned);
  std::vector<std::byte> rows(floats.size() * element_size(to_type));
  float32_to_rows(turned, to_type, rows);
  return rows;
}

// How many patches make a row, of which there are some.
std::uint64_t patches_per_row(Batch batch, std::uint64_t rows) {
  std::uint64_t patches = 0;
  for (const PreprocessedItem* item : batch) patches += patch_count(required_grid(*item));
  if (patches % rows != 0) {
    refuse_output(std::to_string(rows) + " rows for " + std::to_string(patches) + " patches");
  }
  return patches / rows;
}

}  // namespace

std::size_t dim_axis(RowLayout layout) { return layout == RowLayout::tokens ? 2 : 1; }

std::size_t output_rank(RowLayout layout) {
  switch (layout) {
    case RowLayout::tokens:
      return 3;
    case RowLayout::packed:
      return 2;
    case RowLayout::chw:
      return 4;
  }
  return 0;
}

std::vector<EncoderOutput> split_tokens(const OutputTensor& output, std::size_t items,
                                        DType dtype) {
  const DType from_type = float_type(output);
  require_rank(output, RowLayout::tokens);
  require_items(output, items);
  const std::uint32_t rows = row_count(static_cast<std::uint64_t>(output.shape[1]));
  const std::size_t item_bytes = output.bytes.size() / items;

  std::vector<EncoderOutput> outputs(items);
  for (std::size_t i = 0; i < items; ++i) {
    outputs[i].rows = rows;
    outputs[i].bytes = convert(output.bytes.subspan(i * item_bytes, item_bytes), from_type, dtype);
  }
  return outputs;
}

std::vector<EncoderOutput> split_chw(const OutputTensor& output, std::size_t items, DType dtype) {
  const DType from_type = float_type(output);
  require_rank(output, RowLayout::chw);
  require_items(output, items);
  const auto channels = static_cast<std::size_t>(output.shape[1]);
  const auto height = static_cast<std::uint64_t>(output.shape[2]);
  const auto width = static_cast<std::uint64_t>(output.shape[3]);
  const std::uint32_t rows = row_count(height * width);
  if (channels == 0) refuse_output("no channels");
  const std::size_t item_bytes = output.bytes.size() / items;

  std::vector<EncoderOutput> outputs(items);
  for (std::size_t i = 0; i < items; ++i) {
    outputs[i].rows = rows;
    outputs[i].grid =
        Grid{1, static_cast<std::uint32_t>(height), static_cast<std::uint32_t>(width)};
    outputs[i].bytes = feature_map_rows(output.bytes.subspan(i * item_bytes, item_bytes), from_type,
                                        channels, dtype);
  }
  return outputs;
}

std::vector<EncoderOutput> split_packed(const OutputTensor& output, Batch batch, DType dtype) {
  const DType from_type = float_type(output);
  require_rank(output, RowLayout::packed);
  const auto rows = static_cast<std::uint64_t>(output.shape[0]);
  if (rows == 0) refuse_output("no rows");
  const std::uint64_t merged = patches_per_row(batch, rows);
  const std::size_t row_bytes = output.bytes.size() / rows;

  std::vector<EncoderOutput> outputs;
  std::span<const std::byte> rest = output.bytes;
  for (const PreprocessedItem* item : batch) {
    const std::uint64_t patches = patch_count(required_grid(*item));
    if (patches % merged != 0) {
      refuse_output(std::to_string(patches) + " patches of an item, " + std::to_string(merged) +
                    " a row");
    }
    EncoderOutput& out = outputs.emplace_back();
    out.rows = row_count(patches / merged);
    const std::size_t bytes = out.rows * row_bytes;
    out.bytes = convert(rest.first(bytes), from_type, dtype);
    rest = rest.subspan(bytes);
  }
  return outputs;
}

}  // namespace vitrove
