#include "preprocess/patch_geometry.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "preprocess/processed_size.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr double most_unequal = 200;

// Where the family's own parameters leave sizes open. As floats they take twelve times as many
// bytes.
constexpr std::uint64_t most_clip_pixels = 134'217'728;

// The bounds of qwen-vl-utils for a frame, in tokens, and how far the lower one gives way to.
constexpr std::uint64_t fewest_frame_tokens = 128;
constexpr std::uint64_t most_frame_tokens = 768;
constexpr double above_the_least = 1.05;

struct PixelRange {
  double least = 0;
  double most = 0;
};

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

PixelRange own_range(const PatchParams& params) {
  return {static_cast<double>(params.min_pixels), static_cast<double>(params.max_pixels)};
}

// For each frame of a clip of so many: what both allow or, where nothing is common to them (the
// model is made for other sizes), the parameters' own. `frames` is even, as qwen-vl-utils has it.
PixelRange frame_range(std::uint64_t frames, const PatchParams& params) {
  const PixelRange own = own_range(params);
  if (params.clip_sizes == ClipSizes::transformers) return own;
  const std::uint64_t side = std::uint64_t{params.patch_size} * params.merge_size;
  const auto least = static_cast<double>(fewest_frame_tokens * side * side);
  const auto most = static_cast<double>(most_frame_tokens * side * side);
  const double share = static_cast<double>(params.total_pixels) / static_cast<double>(frames) * 2;
  const double held = std::max(std::min(most, share), std::floor(least * above_the_least));
  if (own.most < least || own.least > held) return own;
  return {std::max(own.least, least), std::min(own.most, held)};
}

// The arithmetic in double, and its order, are part of the result. `frames` and `counted_frames`
// are 1 where frames do not count.
Size smart_resize(const Size& picture, double frames, double counted_frames,
                  const PatchParams& params, const PixelRange& range) {
  const double factor = std::uint64_t{params.patch_size} * params.merge_size;
  const double height = picture.height;
  const double width = picture.width;
  const auto [least, most] = range;
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

// What resizing aimed at.
std::uint64_t counted(std::uint64_t pixels, const PatchParams& params, const PixelRange& range) {
  return params.do_resize ? std::min(pixels, static_cast<std::uint64_t>(range.most)) : pixels;
}

std::uint64_t whole_steps(std::uint64_t frames, const PatchParams& params) {
  return (frames + params.temporal_patch_size - 1) / params.temporal_patch_size;
}

void check_picture(const Size& resized, const PatchParams& params, const PixelRange& range,
                   std::uint64_t limit) {
  if (counted(area(resized), params, range) <= limit) return;
  refuse_processed_size("an image would become " + describe(resized), limit, processed_pixels);
}

void check_all_frames(const Size& resized, std::uint64_t frames, std::uint64_t pixels,
                      std::uint64_t limit) {
  if (pixels <= limit) return;
  refuse_processed_size(
      "a clip would become " + std::to_string(frames) + " frames of " + describe(resized), limit,
      processed_clip_pixels);
}

PatchLayout lay_out(const Size& resized, std::uint64_t frames, const PatchParams& params) {
  return {resized,
          {static_cast<std::uint32_t>(whole_steps(frames, params)),
           resized.height / params.patch_size, resized.width / params.patch_size}};
}

Size resized_clip(const Size& picture, std::uint64_t frames, const PatchParams& params,
                  const PixelRange& range, bool counts_all_frames) {
  if (!counts_all_frames) return smart_resize(picture, 1, 1, params, range);
  const auto all = static_cast<double>(frames);
  return smart_resize(picture, all, round_to_multiple(all, params.temporal_patch_size), params,
                      range);
}

// The clip that takes most by the family's own parameters, where frames have bounds of their own.
std::uint64_t largest_clip(const PatchParams& params) {
  if (!params.do_resize) return most_clip_pixels;
  const VideoSampling& sampling = params.sampling;
  const std::uint64_t frames = sampling.num_frames.value_or(sampling.max_frames);
  const std::uint64_t even = whole_steps(frames, params) * params.temporal_patch_size;
  if (params.clip_sizes == ClipSizes::transformers) {
    return std::min(even * params.max_pixels, most_clip_pixels);
  }
  std::uint64_t largest = 0;
  for (std::uint64_t count = params.temporal_patch_size; count <= even;
       count += params.temporal_patch_size) {
    const auto most = static_cast<std::uint64_t>(frame_range(count, params).most);
    largest = std::max(largest, count * most);
  }
  return std::min(largest, std::max(most_clip_pixels, 2 * params.total_pixels));
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

PatchBounds bounds_of(const PatchFamily& family, const PreprocessLimits& limits) {
  const auto by_file = [](const PatchParams& params) {
    return params.do_resize ? params.max_pixels : most_open_pixels;
  };
  PatchBounds bounds;
  bounds.picture_pixels = bound_or(limits.max_pixels, by_file(family.image));
  if (family.counts_all_frames) {
    const std::uint64_t all = family.video.do_resize ? family.video.max_pixels : most_clip_pixels;
    bounds.clip_pixels = bound_or(limits.max_clip_pixels, all);
    bounds.frame_pixels = bound_or(limits.max_pixels, bounds.clip_pixels);
    return bounds;
  }
  bounds.frame_pixels = bound_or(limits.max_pixels, by_file(family.video));
  bounds.clip_pixels = bound_or(limits.max_clip_pixels, largest_clip(family.video));
  return bounds;
}

void check_bounds(const PatchFamily& family, const PreprocessLimits& limits) {
  const auto least = [](const PatchParams& params) {
    return params.do_resize ? params.min_pixels : 0;
  };
  const std::uint64_t clip = least(family.video);
  check_processed_bound(limits.max_pixels, least(family.image), processed_pixels);
  if (family.counts_all_frames) {
    return check_processed_bound(limits.max_clip_pixels, clip, processed_clip_pixels);
  }
  check_processed_bound(limits.max_pixels, clip, processed_pixels);
  check_processed_bound(limits.max_clip_pixels, clip * family.video.temporal_patch_size,
                        processed_clip_pixels);
}

PatchLayout lay_out_picture(const Size& picture, const PatchParams& params,
                            const PatchBounds& bounds) {
  Size resized = picture;
  if (params.do_resize) {
    check_ratio(picture);
    resized = smart_resize(picture, 1, 1, params, own_range(params));
  } else {
    check_multiples(picture, params);
  }
  check_picture(resized, params, own_range(params), bounds.picture_pixels);
  return lay_out(resized, 1, params);
}

PatchLayout lay_out_clip(const Size& picture, std::uint64_t frames, const PatchParams& params,
                         const PatchFamily& family, const PatchBounds& bounds) {
  const std::uint64_t all = whole_steps(frames, params) * params.temporal_patch_size;
  const PixelRange range = frame_range(all, params);
  Size resized = picture;
  if (params.do_resize) {
    if (family.counts_all_frames) check_clip(picture, frames, params);
    check_ratio(picture);
    resized = resized_clip(picture, frames, params, range, family.counts_all_frames);
  } else {
    check_multiples(picture, params);
  }
  if (family.counts_all_frames) {
    check_all_frames(resized, frames, counted(all * area(resized), params, range),
                     bounds.clip_pixels);
    check_picture(resized, params, range, bounds.frame_pixels);
  } else {
    check_picture(resized, params, range, bounds.frame_pixels);
    check_all_frames(resized, frames, all * counted(area(resized), params, range),
                     bounds.clip_pixels);
  }
  return lay_out(resized, frames, params);
}

void check_pixels(const Size& picture) {
  if (picture.width == 0 || picture.height == 0) refuse_params("the image has no pixels");
}

std::uint32_t token_count(const Grid& grid, std::uint32_t merge_size) {
  return grid.t * (grid.h / merge_size) * (grid.w / merge_size);
}

}  // namespace vitrove
