#include "encoders/onnx/grid_indices.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "vitrove/error.h"

namespace vitrove {
namespace {

void require_blocks(const Grid& grid, std::uint32_t merge) {
  if (grid.h % merge == 0 && grid.w % merge == 0) return;
  throw Error(ErrorCode::internal,
              "a grid of " + std::to_string(grid.h) + " by " + std::to_string(grid.w) +
                  " patches does not divide into blocks of " + std::to_string(merge));
}

std::size_t total_patches(std::span<const Grid> grids) {
  std::size_t total = 0;
  for (const Grid& grid : grids) total += std::size_t{grid.t} * grid.h * grid.w;
  return total;
}

// Calls visit(row, column) for the patches of one temporal step, in their order.
template <typename Visit>
void visit_patches(const Grid& grid, std::uint32_t merge, Visit visit) {
  for (std::uint32_t top = 0; top < grid.h; top += merge) {
    for (std::uint32_t left = 0; left < grid.w; left += merge) {
      for (std::uint32_t row = top; row < top + merge; ++row) {
        for (std::uint32_t column = left; column < left + merge; ++column) visit(row, column);
      }
    }
  }
}

// Appends the numbers of the blocks of one temporal step, of which `first` is the first, window
// after window.
void append_windows(std::uint32_t height, std::uint32_t width, std::uint32_t side,
                    std::int64_t first, std::vector<std::int64_t>& order) {
  for (std::uint32_t top = 0; top < height; top += side) {
    for (std::uint32_t left = 0; left < width; left += side) {
      for (std::uint32_t row = top; row < std::min(top + side, height); ++row) {
        for (std::uint32_t column = left; column < std::min(left + side, width); ++column) {
          order.push_back(first + std::int64_t{row} * width + column);
        }
      }
    }
  }
}

// Where a patch lies on one axis of the learned grid: between `low` and `high`.
struct AxisPlace {
  std::int64_t low = 0;
  std::int64_t high = 0;
  float beyond_low = 0;  // from 0 to 1
};

// `count` places from the first learned one to the last. Both halves are counted from their own
// end, as torch.linspace does: the last place is then exactly the last learned one.
std::vector<AxisPlace> spread(std::uint32_t count, std::uint32_t side) {
  const auto last = static_cast<float>(side - 1);
  const float step = count > 1 ? last / static_cast<float>(count - 1) : 0.0F;
  std::vector<AxisPlace> places(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool counts_up = i < count / 2 || count == 1;
    const float at =
        counts_up ? step * static_cast<float>(i) : last - step * static_cast<float>(count - 1 - i);
    const auto low = static_cast<std::int64_t>(at);
    places[i] = {low, std::min<std::int64_t>(low + 1, side - 1), at - static_cast<float>(low)};
  }
  return places;
}

class PositionWriter {
 public:
  PositionWriter(std::size_t patches, std::uint32_t side) : patches_(patches), side_(side) {
    result_.index.resize(4 * patches);
    result_.weight.resize(4 * patches);
  }

  void add(const AxisPlace& row, const AxisPlace& column) {
    const float down = row.beyond_low;
    const float right = column.beyond_low;
    put(0, row.low, column.low, (1 - down) * (1 - right));
    put(1, row.low, column.high, (1 - down) * right);
    put(2, row.high, column.low, down * (1 - right));
    put(3, row.high, column.high, down * right);
    ++at_;
  }

  StretchedPositions take() { return std::move(result_); }

 private:
  void put(std::size_t corner, std::int64_t row, std::int64_t column, float weight) {
    result_.index[corner * patches_ + at_] = row * side_ + column;
    result_.weight[corner * patches_ + at_] = weight;
  }

  const std::size_t patches_;
  const std::int64_t side_;
  std::size_t at_ = 0;
  StretchedPositions result_;
};

}  // namespace

std::vector<std::int64_t> patch_positions(std::span<const Grid> grids, std::uint32_t merge) {
  std::vector<std::int64_t> positions;
  positions.reserve(2 * total_patches(grids));
  for (const Grid& grid : grids) {
    require_blocks(grid, merge);
    for (std::uint32_t step = 0; step < grid.t; ++step) {
      visit_patches(grid, merge, [&](std::uint32_t row, std::uint32_t column) {
        positions.push_back(row);
        positions.push_back(column);
      });
    }
  }
  return positions;
}

std::vector<std::int64_t> window_order(std::span<const Grid> grids, std::uint32_t merge,
                                       std::uint32_t side) {
  std::vector<std::int64_t> order;
  for (const Grid& grid : grids) {
    require_blocks(grid, merge);
    for (std::uint32_t step = 0; step < grid.t; ++step) {
      // Every block so far has been appended once.
      append_windows(grid.h / merge, grid.w / merge, side, std::ssize(order), order);
    }
  }
  return order;
}

StretchedPositions stretched_positions(std::span<const Grid> grids, std::uint32_t merge,
                                       std::uint32_t side) {
  PositionWriter writer(total_patches(grids), side);
  for (const Grid& grid : grids) {
    require_blocks(grid, merge);
    const auto rows = spread(grid.h, side);
    const auto columns = spread(grid.w, side);
    for (std::uint32_t step = 0; step < grid.t; ++step) {
      visit_patches(grid, merge, [&](std::uint32_t row, std::uint32_t column) {
        writer.add(rows[row], columns[column]);
      });
    }
  }
  return writer.take();
}

}  // namespace vitrove
