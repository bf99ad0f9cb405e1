// The preprocessor of the CLIP-like families: resize, centre crop, rescale, normalise.
#pragma once

#include "preprocess/image_families.h"
#include "preprocess/image_geometry.h"
#include "vitrove/preprocess.h"

namespace vitrove {

class ImageProcessor final : public Preprocessor {
 public:
  // `family` must outlive it (they are constants). Throws Error{invalid_argument} for a limit that
  // no picture can keep.
  ImageProcessor(const ImageFamily& family, const ImageParams& params,
                 const PreprocessLimits& limits);

  std::string_view family() const override { return family_.name; }
  ResolvedParams resolve(Modality modality, std::string_view kwargs) const override;
  std::uint64_t bytes_beside(std::uint32_t width, std::uint32_t height,
                             const ResolvedParams& params) const override;
  std::uint32_t jpeg_reduction(std::uint32_t width, std::uint32_t height,
                               const ResolvedParams& params) const override;
  PreprocessedItem run(const RgbImage& image, const ResolvedParams& params) const override;
  std::vector<PipelineVersion> versions() const override;

 private:
  // What the family's own parameters make of it.
  std::uint64_t most_pixels_by_file(const Size& picture) const;
  // Throws Error{too_large} when the canvas would be larger than the limits allow, or without them
  // the family's own parameters.
  Placement place_within_bounds(const Size& picture, const ImageParams& params) const;

  const ImageFamily& family_;
  const ImageParams params_;
  const PreprocessLimits limits_;
};

}  // namespace vitrove
