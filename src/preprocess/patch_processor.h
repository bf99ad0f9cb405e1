// The preprocessor of the Qwen-VL families: pictures and clips as patches with a grid.
#pragma once

#include "preprocess/patch_geometry.h"
#include "vitrove/preprocess.h"

namespace vitrove {

class PatchProcessor final : public Preprocessor {
 public:
  // With the parameters of its file in `family`.
  PatchProcessor(const PatchFamily& family, const PreprocessLimits& limits)
      : family_(family), bounds_(bounds_of(family, limits)) {
    check_bounds(family, limits);
  }

  std::string_view family() const override { return family_.name; }
  ResolvedParams resolve(Modality modality, std::string_view kwargs) const override;
  std::uint64_t bytes_beside(std::uint32_t width, std::uint32_t height,
                             const ResolvedParams& params) const override;
  std::uint32_t jpeg_reduction(std::uint32_t width, std::uint32_t height,
                               const ResolvedParams& params) const override;
  PreprocessedItem run(const RgbImage& image, const ResolvedParams& params) const override;
  VideoSampling video_sampling(const ResolvedParams& params) const override;
  std::uint64_t video_bytes_beside(const MediaShape& shape,
                                   const ResolvedParams& params) const override;
  std::unique_ptr<ClipRun> start_video(const ResolvedParams& params) const override;
  std::vector<PipelineVersion> versions() const override;

 private:
  const PatchFamily family_;
  const PatchBounds bounds_;
};

}  // namespace vitrove
