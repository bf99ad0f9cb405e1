#include "preprocess/patch_processor.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "preprocess/json_text.h"
#include "preprocess/patch_writer.h"
#include "preprocess/reduction.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

Window whole(const Size& size) { return {{0, size.width}, {0, size.height}}; }

// What run() and run_video() take: the resized pictures of one step, and the tensor.
std::uint64_t bytes_for(const Size& picture, const PatchLayout& layout, const PatchParams& params) {
  const Size& size = layout.resized;
  const std::uint64_t pixels = std::uint64_t{size.width} * size.height;
  const std::uint64_t frames = std::uint64_t{layout.grid.t} * params.temporal_patch_size;
  return 3 * pixels * params.temporal_patch_size + 3 * sizeof(float) * pixels * frames +
         resize_scratch_bytes(picture, size, params.resample, whole(size));
}

Tensor patch_tensor(std::string name, const PatchLayout& layout, const PatchParams& params) {
  const auto& grid = layout.grid;
  const std::int64_t patch_floats =
      std::int64_t{3} * params.temporal_patch_size * params.patch_size * params.patch_size;
  const std::int64_t patches = std::int64_t{grid.t} * grid.h * grid.w;
  return {std::move(name),
          {patches, patch_floats},
          std::vector<float>(static_cast<std::size_t>(patches * patch_floats))};
}

// The middle between the first and the last frame of each temporal patch; the last patch may be
// filled up with copies of its last frame.
std::vector<double> step_times(const std::vector<double>& frames, std::size_t frames_a_step) {
  std::vector<double> steps;
  steps.reserve((frames.size() + frames_a_step - 1) / frames_a_step);
  for (std::size_t first = 0; first < frames.size(); first += frames_a_step) {
    const std::size_t last = std::min(first + frames_a_step, frames.size()) - 1;
    steps.push_back((frames[first] + frames[last]) / 2);
  }
  return steps;
}

void check_pixels(const RgbImage& image) {
  if (image.width != 0 && image.height != 0) return;
  throw Error(ErrorCode::invalid_argument, "the image has no pixels");
}

}  // namespace

ResolvedParams PatchProcessor::resolve(Modality modality, std::string_view kwargs) const {
  if (modality == Modality::audio) throw_no_such_modality(family_.name, modality);
  PatchParams params = modality == Modality::video ? family_.video : family_.image;
  apply_json(parse_object(kwargs, "mm_processor_kwargs"), ParamSource::request, modality,
             family_.name, params);
  check_params(params);
  return to_resolved(params, modality);
}

std::uint64_t PatchProcessor::bytes_beside(std::uint32_t width, std::uint32_t height,
                                           const ResolvedParams& resolved) const {
  const PatchParams params = patch_params_from(resolved, Modality::image);
  const Size picture{width, height};
  return bytes_for(picture, lay_out_picture(picture, params, bounds_), params);
}

std::uint32_t PatchProcessor::jpeg_reduction(std::uint32_t width, std::uint32_t height,
                                             const ResolvedParams& resolved) const {
  const PatchParams params = patch_params_from(resolved, Modality::image);
  if (!params.jpeg_scaled_decode) return 1;
  return largest_reduction({width, height}, [&](const Size& picture) {
    return lay_out_picture(picture, params, bounds_);
  });
}

PreprocessedItem PatchProcessor::run(const RgbImage& image, const ResolvedParams& resolved) const {
  check_pixels(image);
  const PatchParams params = patch_params_from(resolved, Modality::image);
  const PatchLayout layout = lay_out_picture({image.width, image.height}, params, bounds_);
  const RgbImage resized = resize(image, layout.resized, params.rule());
  const std::vector<const RgbImage*> still(params.temporal_patch_size, &resized);
  Tensor tensor = patch_tensor("pixel_values", layout, params);
  PatchWriter(params).write_step(still, std::get<std::vector<float>>(tensor.data));
  PreprocessedItem item;
  item.tensors.push_back(std::move(tensor));
  item.grid = layout.grid;
  item.tokens = token_count(layout.grid, params.merge_size);
  return item;
}

VideoSampling PatchProcessor::video_sampling(const ResolvedParams& resolved) const {
  return patch_params_from(resolved, Modality::video).sampling;
}

std::uint64_t PatchProcessor::video_bytes_beside(const MediaShape& shape,
                                                 const ResolvedParams& resolved) const {
  const PatchParams params = patch_params_from(resolved, Modality::video);
  const Size picture{shape.width, shape.height};
  return bytes_for(picture, lay_out_clip(picture, shape.frames, params, family_, bounds_), params);
}

PreprocessedItem PatchProcessor::run_video(const VideoClip& clip,
                                           const ResolvedParams& resolved) const {
  if (clip.frames.empty()) throw Error(ErrorCode::invalid_argument, "the clip has no frames");
  const RgbImage& first = clip.frames.front();
  check_pixels(first);
  const PatchParams params = patch_params_from(resolved, Modality::video);
  const PatchLayout layout =
      lay_out_clip({first.width, first.height}, clip.frames.size(), params, family_, bounds_);
  Tensor tensor = patch_tensor("pixel_values_videos", layout, params);
  const PatchWriter writer(params);
  std::span<float> rest = std::get<std::vector<float>>(tensor.data);
  const std::size_t step_floats = writer.step_floats(layout.resized);
  std::vector<RgbImage> resized(params.temporal_patch_size);
  std::vector<const RgbImage*> step(params.temporal_patch_size);
  for (std::size_t frame = 0; !rest.empty(); rest = rest.subspan(step_floats)) {
    for (std::size_t t = 0; t < step.size(); ++t, ++frame) {
      const bool is_there = frame < clip.frames.size();
      if (is_there) resized[t] = resize(clip.frames[frame], layout.resized, params.rule());
      step[t] = is_there ? &resized[t] : step[t - 1];
    }
    writer.write_step(step, rest.first(step_floats));
  }
  PreprocessedItem item;
  item.modality = Modality::video;
  item.tensors.push_back(std::move(tensor));
  item.grid = layout.grid;
  item.tokens = token_count(layout.grid, params.merge_size);
  item.side.timestamps = step_times(clip.timestamps, params.temporal_patch_size);
  if (clip.sample_fps > 0) {
    item.side.seconds_per_grid = params.temporal_patch_size / clip.sample_fps;
  }
  return item;
}

std::vector<PipelineVersion> PatchProcessor::versions() const {
  return {{std::string(family_.name), family_.version}, {"resize", resize_version}};
}

}  // namespace vitrove
