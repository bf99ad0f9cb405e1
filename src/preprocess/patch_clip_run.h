// A clip of the Qwen-VL families on its way to patches: at any time there are the tensor, and the
// resized frames of one temporal step.
#pragma once

#include <span>
#include <vector>

#include "preprocess/patch_geometry.h"
#include "preprocess/patch_writer.h"
#include "vitrove/preprocess.h"

namespace vitrove {

class PatchClipRun final : public ClipRun {
 public:
  PatchClipRun(const PatchParams& params, const PatchFamily& family, const PatchBounds& bounds)
      : params_(params), family_(family), bounds_(bounds), writer_(params) {}

  void begin(const MediaShape& shape) override;
  void take(RgbImage frame) override;
  PreprocessedItem finish(const ClipTimes& times) override;

 private:
  void write_step();

  const PatchParams params_;
  const PatchFamily& family_;
  const PatchBounds& bounds_;
  const PatchWriter writer_;
  PatchLayout layout_;
  Tensor tensor_;
  std::span<float> rest_;  // of the tensor
  std::vector<RgbImage> step_;
};

}  // namespace vitrove
