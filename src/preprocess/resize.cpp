#include "preprocess/resize.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/large_vector.h"

namespace vitrove {
namespace {

RgbImage allocate(const Window& window) {
  const std::size_t pixels = std::size_t{window.columns.length} * window.rows.length;
  return {window.columns.length, window.rows.length, make_large_vector<std::uint8_t>(3 * pixels)};
}

RgbImage pick_nearest(const RgbImage& image, const Size& size, const Window& window) {
  const auto columns = nearest_positions(image.width, size.width, window.columns);
  const auto rows = nearest_positions(image.height, size.height, window.rows);
  RgbImage result = allocate(window);
  for (std::size_t y = 0; y < rows.size(); ++y) {
    const std::uint8_t* from = image.row(rows[y]);
    std::uint8_t* to = result.row(y);
    for (const std::uint32_t x : columns) {
      std::memcpy(to, from + std::size_t{3} * x, 3);
      to += 3;
    }
  }
  return result;
}

// Rows of the picture after the horizontal pass, made in blocks as they are asked for in rising
// order. Only as many are kept as one output row can need.
class NarrowRows {
 public:
  NarrowRows(const RgbImage& image, const Size& size, const Window& window, const ResizeRule& rule,
             const Range& rows, std::size_t max_kept, const ResampleKernels& kernels)
      : image_(image),
        kernels_(kernels),
        columns_(window.columns),
        next_(rows.start),
        end_(rows.end()),
        kept_(max_kept + lanes),
        row_bytes_(std::size_t{3} * window.columns.length),
        rows_(kept_ * row_bytes_) {
    if (size.width == image.width) return;
    weights_.emplace(image.width, size.width, window.columns, rule.filter, rule.rounding);
    used_ = weights_->used();
    turned_.resize(block_bytes * used_.length);
    combined_.resize(lanes * row_bytes_);
  }

  std::size_t row_bytes() const { return row_bytes_; }

  // Valid until rows beyond its block are asked for.
  const std::uint8_t* row(std::uint32_t y) {
    while (y >= next_) make_block();
    return slot(y);
  }

 private:
  std::uint8_t* slot(std::uint32_t y) { return rows_.data() + (y % kept_) * row_bytes_; }

  void make_block() {
    const std::uint32_t count = std::min<std::uint32_t>(lanes, end_ - next_);
    if (weights_) {
      combine_block(count);
    } else {
      for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint8_t* from = image_.row(next_ + i) + std::size_t{3} * columns_.start;
        std::memcpy(slot(next_ + i), from, row_bytes_);
      }
    }
    next_ += count;
  }

  void combine_block(std::uint32_t count) {
    RowPointers from;
    MutableRowPointers to;
    // A short block is filled up with its last row, written over and over.
    for (std::uint32_t i = 0; i < lanes; ++i) {
      const std::uint32_t y = next_ + std::min(i, count - 1);
      from[i] = image_.row(y) + std::size_t{3} * used_.start;
      to[i] = slot(y);
    }
    gather_rows(from, std::size_t{3} * used_.length, turned_.data());
    std::uint8_t* out = combined_.data();
    for (std::size_t x = 0; x < weights_->size(); ++x, out += block_bytes) {
      const std::size_t first = weights_->run(x).start - used_.start;
      kernels_.combine_blocks(turned_.data() + first * block_bytes, weights_->weights(x), out);
    }
    scatter_rows(combined_.data(), row_bytes_, to);
  }

  const RgbImage& image_;
  const ResampleKernels& kernels_;
  Range columns_;
  std::uint32_t next_;
  std::uint32_t end_;
  std::size_t kept_;
  std::size_t row_bytes_;
  std::vector<std::uint8_t> rows_;
  std::optional<AxisWeights> weights_;  // none: the width stays
  Range used_;
  std::vector<std::uint8_t> turned_;
  std::vector<std::uint8_t> combined_;
};

}  // namespace

RgbImage resize(const RgbImage& image, const Size& size, const ResizeRule& rule,
                const Window& window, const ResampleKernels& kernels) {
  if (rule.filter == Resampling::nearest) return pick_nearest(image, size, window);
  RgbImage result = allocate(window);
  if (size.height == image.height) {
    NarrowRows narrow(image, size, window, rule, window.rows, 1, kernels);
    for (std::uint32_t y = 0; y < window.rows.length; ++y) {
      std::memcpy(result.row(y), narrow.row(window.rows.start + y), narrow.row_bytes());
    }
    return result;
  }
  const AxisWeights weights(image.height, size.height, window.rows, rule.filter, rule.rounding);
  NarrowRows narrow(image, size, window, rule, weights.used(), weights.max_run(), kernels);
  std::vector<const std::uint8_t*> rows(weights.max_run());
  for (std::uint32_t y = 0; y < window.rows.length; ++y) {
    const Range& run = weights.run(y);
    for (std::uint32_t k = 0; k < run.length; ++k) rows[k] = narrow.row(run.start + k);
    kernels.combine_rows(rows.data(), weights.weights(y), narrow.row_bytes(), result.row(y));
  }
  return result;
}

std::uint64_t resize_scratch_bytes(const Size& from, const Size& to, Resampling filter,
                                   const Window& window) {
  const std::uint64_t columns = window.columns.length;
  const std::uint64_t rows = window.rows.length;
  if (filter == Resampling::nearest) return sizeof(std::uint32_t) * (columns + rows);
  const std::uint64_t run_across = AxisWeights::max_run(from.width, to.width, filter);
  const std::uint64_t run_down = AxisWeights::max_run(from.height, to.height, filter);
  const std::uint64_t weights =
      AxisWeights::bytes(run_across, columns) + AxisWeights::bytes(run_down, rows);
  const std::uint64_t kept_rows = 3 * columns * (run_down + lanes);
  const std::uint64_t blocks = block_bytes * (from.width + columns);
  return weights + kept_rows + blocks;
}

RgbImage resize(const RgbImage& image, const Size& size, const ResizeRule& rule) {
  return resize(image, size, rule, {{0, size.width}, {0, size.height}});
}

}  // namespace vitrove
