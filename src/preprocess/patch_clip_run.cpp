#include "preprocess/patch_clip_run.h"

#include <algorithm>
#include <utility>

#include "vitrove/error.h"

namespace vitrove {
namespace {

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

}  // namespace

void PatchClipRun::begin(const MediaShape& shape) {
  const Size picture{shape.width, shape.height};
  check_pixels(picture);
  layout_ = lay_out_clip(picture, shape.frames, params_, family_, bounds_);
  step_.clear();
  tensor_ = {};  // the one before, of another number of frames: not both at a time
  tensor_ = patch_tensor("pixel_values_videos", layout_.grid, params_);
  rest_ = std::get<std::vector<float>>(tensor_.data);
}

void PatchClipRun::take(RgbImage frame) {
  if (rest_.empty()) throw Error(ErrorCode::internal, "a clip has more frames than it began with");
  step_.push_back(resize(frame, layout_.resized, params_.rule()));
  if (step_.size() == params_.temporal_patch_size) write_step();
}

PreprocessedItem PatchClipRun::finish(const ClipTimes& times) {
  if (!step_.empty()) write_step();
  if (!rest_.empty())
    throw Error(ErrorCode::internal, "a clip has fewer frames than it began with");
  PreprocessedItem item;
  item.modality = Modality::video;
  item.tensors.push_back(std::move(tensor_));
  item.grid = layout_.grid;
  item.tokens = token_count(layout_.grid, params_.merge_size);
  item.side.timestamps = step_times(times.timestamps, params_.temporal_patch_size);
  if (times.sample_fps > 0) {
    item.side.seconds_per_grid = params_.temporal_patch_size / times.sample_fps;
  }
  return item;
}

// The last one is filled up with its last frame.
void PatchClipRun::write_step() {
  std::vector<const RgbImage*> frames(params_.temporal_patch_size, &step_.back());
  for (std::size_t t = 0; t < step_.size(); ++t) frames[t] = &step_[t];
  const std::size_t count = writer_.step_floats(layout_.resized);
  writer_.write_step(frames, rest_.first(count));
  rest_ = rest_.subspan(count);
  step_.clear();
}

}  // namespace vitrove
