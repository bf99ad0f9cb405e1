#include "preprocess/patch_geometry.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr double most_unequal = 200;

std::string describe(const Size& size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height) + " pixels";
}

// Halves to even, as Python rounds.
double round_to_multiple(double value, double factor) {
  return std::nearbyint(value / factor) * factor;
}
double floor_to_multiple(double value, double factor) {
  return std::max(std::floor(value / factor) * factor, factor);
}
double ceil_to_multiple(double value, double factor) { return std::ceil(value / factor) * factor; }

void check_ratio(const Size& picture) {
  const double longer = std::max(picture.width, picture.height);
  const double shorter = std::min(picture.width, picture.height);
  if (longer / shorter <= most_unequal) return;
  refuse_params("the sides of " + describe(picture) +
                " are too unequal: the limit is a ratio of 200 : 1");
}

// The arithmetic in double, and its order, are part of the result. `frames` and `counted_frames`
// are 1 where frames do not count.
Size smart_resize(const Size& picture, double frames, double counted_frames,
                  const PatchParams& params) {
  const double factor = std::uint64_t{params.patch_size} * params.merge_size;
  const double height = picture.height;
  const double width = picture.width;
  const auto least = static_cast<double>(params.min_pixels);
  const auto most = static_cast<double>(params.max_pixels);
  double new_height = round_to_multiple(height, factor);
  double new_width = round_to_multiple(width, factor);
  const double pixels = counted_frames * new_height * new_width;
  if (pixels > most) {
    const double shrink = std::sqrt((frames * height * width) / most);
    new_height = floor_to_multiple(height / shrink, factor);
    new_width = floor_to_multiple(width / shrink, factor);
  } else if (pixels < least) {
    const double grow = std::sqrt(least / (frames * height * width));
    new_height = ceil_to_multiple(height * grow, factor);
    new_width = ceil_to_multiple(width * grow, factor);
  }
  constexpr double largest_side = 1 << 30;
  if (std::max(new_height, new_width) > largest_side || std::min(new_height, new_width) < factor) {
    refuse_params("an image of " + describe(picture) + " cannot be resized to between " +
                  std::to_string(params.min_pixels) + " and " + std::to_string(params.max_pixels) +
                  " pixels");
  }
  return {static_cast<std::uint32_t>(new_width), static_cast<std::uint32_t>(new_height)};
}

void check_multiples(const Size& picture, const PatchParams& params) {
  const std::uint32_t factor = params.patch_size * params.merge_size;
  if (picture.width % factor == 0 && picture.height % factor == 0) return;
  refuse_params("without do_resize the sides must be multiples of " + std::to_string(factor) +
                ", not " + describe(picture));
}

PatchLayout lay_out(const Size& resized, std::uint64_t frames, const PatchParams& params,
                    const PreprocessLimits& limits) {
  const std::uint64_t area = std::uint64_t{resized.width} * resized.height;
  if (area > limits.max_pixels) {
    refuse_params("an image would become " + describe(resized) +
                  " for the model, beyond the limit of " + std::to_string(limits.max_pixels) +
                  " pixels");
  }
  const std::uint64_t steps =
      (frames + params.temporal_patch_size - 1) / params.temporal_patch_size;
  if (steps * params.temporal_patch_size > limits.max_clip_pixels / area && frames > 1) {
    refuse_params("a clip would become " + std::to_string(frames) + " frames of " +
                  describe(resized) + " for the model, beyond the limit of " +
                  std::to_string(limits.max_clip_pixels) + " pixels");
  }
  return {resized,
          {static_cast<std::uint32_t>(steps), resized.height / params.patch_size,
           resized.width / params.patch_size}};
}

void check_clip(const Size& picture, std::uint64_t frames, const PatchParams& params) {
  const std::uint32_t factor = params.patch_size * params.merge_size;
  if (frames < params.temporal_patch_size) {
    refuse_params("a clip of " + std::to_string(frames) + " frames is too short: the model takes " +
                  std::to_string(params.temporal_patch_size) + " at least");
  }
  if (std::min(picture.width, picture.height) < factor) {
    refuse_params("a clip of " + describe(picture) + " is too small: the model takes sides of " +
                  std::to_string(factor) + " at least");
  }
}

}  // namespace

PatchLayout lay_out_picture(const Size& picture, const PatchParams& params,
                            const PreprocessLimits& limits) {
  if (!params.do_resize) {
    check_multiples(picture, params);
    return lay_out(picture, 1, params, limits);
  }
  check_ratio(picture);
  return lay_out(smart_resize(picture, 1, 1, params), 1, params, limits);
}

PatchLayout lay_out_clip(const Size& picture, std::uint64_t frames, const PatchParams& params,
                         const PatchFamily& family, const PreprocessLimits& limits) {
  if (!params.do_resize) {
    check_multiples(picture, params);
    return lay_out(picture, frames, params, limits);
  }
  if (!family.counts_all_frames) {
    check_ratio(picture);
    return lay_out(smart_resize(picture, 1, 1, params), frames, params, limits);
  }
  check_clip(picture, frames, params);
  check_ratio(picture);
  const auto all = static_cast<double>(frames);
  const double counted = round_to_multiple(all, params.temporal_patch_size);
  return lay_out(smart_resize(picture, all, counted, params), frames, params, limits);
}

std::uint32_t token_count(const Grid& grid, std::uint32_t merge_size) {
  return grid.t * (grid.h / merge_size) * (grid.w / merge_size);
}

}  // namespace vitrove
