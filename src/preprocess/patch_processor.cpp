#include "preprocess/patch_processor.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "preprocess/json_text.h"
#include "preprocess/patch_clip_run.h"
#include "preprocess/patch_writer.h"
#include "preprocess/reduction.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

Window whole(const Size& size) { return {{0, size.width}, {0, size.height}}; }

// What run() and a clip's run take: the resized pictures of one step, and the tensor.
std::uint64_t bytes_for(const Size& picture, const PatchLayout& layout, const PatchParams& params) {
  const Size& size = layout.resized;
  const std::uint64_t pixels = std::uint64_t{size.width} * size.height;
  const std::uint64_t frames = std::uint64_t{layout.grid.t} * params.temporal_patch_size;
  return 3 * pixels * params.temporal_patch_size + 3 * sizeof(float) * pixels * frames +
         resize_scratch_bytes(picture, size, params.resample, whole(size));
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
  check_pixels({image.width, image.height});
  const PatchParams params = patch_params_from(resolved, Modality::image);
  const PatchLayout layout = lay_out_picture({image.width, image.height}, params, bounds_);
  const RgbImage resized = resize(image, layout.resized, params.rule());
  const std::vector<const RgbImage*> still(params.temporal_patch_size, &resized);
  Tensor tensor = patch_tensor("pixel_values", layout.grid, params);
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

std::unique_ptr<ClipRun> PatchProcessor::start_video(const ResolvedParams& resolved) const {
  return std::make_unique<PatchClipRun>(patch_params_from(resolved, Modality::video), family_,
                                        bounds_);
}

std::vector<PipelineVersion> PatchProcessor::versions() const {
  return {{std::string(family_.name), family_.version}, {"resize", resize_version}};
}

}  // namespace vitrove
