#include "preprocess/image_processor.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/large_vector.h"
#include "preprocess/json_text.h"
#include "preprocess/processed_size.h"
#include "preprocess/reduction.h"
#include "preprocess/resize.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

// Interleaved bytes to planes of floats; the canvas around the picture is black.
std::vector<float> to_planes(const RgbImage& image, const Placement& placement,
                             const ImageParams& params) {
  const std::size_t width = placement.canvas.width;
  const std::size_t plane = width * placement.canvas.height;
  std::vector<float> result = make_large_vector<float>(3 * plane);
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const ChannelTable table = make_channel_table(params.normalization, channel);
    float* const first = result.data() + channel * plane;
    if (image.pixels.size() != 3 * plane) std::fill_n(first, plane, table[0]);
    for (std::size_t y = 0; y < image.height; ++y) {
      const std::uint8_t* from = image.row(y) + channel;
      float* to = first + (placement.top + y) * width + placement.left;
      for (std::size_t x = 0; x < image.width; ++x) to[x] = table[from[3 * x]];
    }
  }
  return result;
}

}  // namespace

ImageProcessor::ImageProcessor(const ImageFamily& family, const ImageParams& params,
                               const PreprocessLimits& limits)
    : family_(family), params_(params), limits_(limits) {
  if (!has_fixed_canvas(params, family)) return;
  constexpr Size any{64, 64};
  check_processed_bound(limits.max_pixels, area(place(any, params, family).canvas),
                        processed_pixels);
}

std::uint64_t ImageProcessor::most_pixels_by_file(const Size& picture) const {
  const std::uint64_t pixels = area(place(picture, params_, family_).canvas);
  return has_fixed_canvas(params_, family_) ? pixels : std::min(pixels, most_open_pixels);
}

Placement ImageProcessor::place_within_bounds(const Size& picture,
                                              const ImageParams& params) const {
  const Placement result = place(picture, params, family_);
  const std::uint64_t limit =
      limits_.max_pixels != 0 ? limits_.max_pixels : most_pixels_by_file(picture);
  if (area(result.canvas) <= limit) return result;
  refuse_processed_size("an image of " + std::to_string(picture.width) + " x " +
                            std::to_string(picture.height) + " pixels would become " +
                            std::to_string(result.canvas.width) + " x " +
                            std::to_string(result.canvas.height),
                        limit, processed_pixels);
}

ResolvedParams ImageProcessor::resolve(Modality modality, std::string_view kwargs) const {
  if (modality != Modality::image) throw_no_such_modality(family_.name, modality);
  ImageParams params = params_;
  apply_json(parse_object(kwargs, "mm_processor_kwargs"), ParamSource::request, family_, params);
  check_params(params);
  return to_resolved(params, family_);
}

std::uint64_t ImageProcessor::bytes_beside(std::uint32_t width, std::uint32_t height,
                                           const ResolvedParams& resolved) const {
  const ImageParams params = from_resolved(resolved, family_);
  const Size picture{width, height};
  const Placement placement = place_within_bounds(picture, params);
  const std::uint64_t seen =
      std::uint64_t{3} * placement.window.columns.length * placement.window.rows.length;
  const std::uint64_t planes =
      std::uint64_t{3} * sizeof(float) * placement.canvas.width * placement.canvas.height;
  // Resizing is over before the planes are made.
  return seen + std::max(planes, resize_scratch_bytes(picture, placement.resized, params.resample,
                                                      placement.window));
}

std::uint32_t ImageProcessor::jpeg_reduction(std::uint32_t width, std::uint32_t height,
                                             const ResolvedParams& resolved) const {
  const ImageParams params = from_resolved(resolved, family_);
  if (!params.jpeg_scaled_decode) return 1;
  return largest_reduction({width, height},
                           [&](const Size& picture) { return place(picture, params, family_); });
}

PreprocessedItem ImageProcessor::run(const RgbImage& image, const ResolvedParams& resolved) const {
  if (image.width == 0 || image.height == 0) {
    throw Error(ErrorCode::invalid_argument, "the image has no pixels");
  }
  const ImageParams params = from_resolved(resolved, family_);
  const Placement placement = place_within_bounds({image.width, image.height}, params);
  const RgbImage seen = resize(image, placement.resized, params.resample, placement.window);
  PreprocessedItem item;
  item.tensors.push_back(
      {"pixel_values",
       {3, std::int64_t{placement.canvas.height}, std::int64_t{placement.canvas.width}},
       to_planes(seen, placement, params)});
  return item;
}

std::vector<PipelineVersion> ImageProcessor::versions() const {
  return {{std::string(family_.name), family_.version}, {"resize", resize_version}};
}

}  // namespace vitrove
