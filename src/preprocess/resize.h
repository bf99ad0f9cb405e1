// Resizing equal to Pillow's Image.resize, bit for bit; with coarser weights, to torchvision's
// resize of bytes with antialiasing.
//
// Columns first, then rows, rounded to 8 bits in between: the order of Pillow up to 12.1, with
// which today's models were trained. (Pillow 13 takes the rows first where the height shrinks much
// more than the width; there a few values differ in the last bit.)
#pragma once

#include <cstdint>

#include "preprocess/resample_filter.h"
#include "preprocess/resample_kernels.h"
#include "vitrove/media.h"

namespace vitrove {

// Raised whenever the resized bytes may change.
constexpr std::uint32_t resize_version = 1;

struct Size {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  bool operator==(const Size&) const = default;
};

struct ResizeRule {
  // NOLINTNEXTLINE(google-explicit-constructor): a filter alone means Pillow's resizing with it.
  ResizeRule(Resampling with, WeightRounding rounded = WeightRounding::pillow)
      : filter(with), rounding(rounded) {}

  Resampling filter;
  WeightRounding rounding;
};

// A rectangle of the resized picture.
struct Window {
  Range columns;
  Range rows;
  bool operator==(const Window&) const = default;
};

// Only `window` of the picture in its new size is computed, and only memory for that is taken: a
// model that crops never pays for what it cuts off, however long the picture is. No side may be
// zero, and the window not empty.
RgbImage resize(const RgbImage& image, const Size& size, const ResizeRule& rule,
                const Window& window, const ResampleKernels& kernels = best_kernels());

RgbImage resize(const RgbImage& image, const Size& size, const ResizeRule& rule);

// What that takes beside the two pictures: weights, and rows between the two passes.
std::uint64_t resize_scratch_bytes(const Size& from, const Size& to, Resampling filter,
                                   const Window& window);

}  // namespace vitrove
