#include <nlohmann/json.hpp>

#include "preprocess/json_text.h"
#include "vitrove/error.h"
#include "vitrove/preprocess.h"

namespace vitrove {
namespace {

class RawPreprocessor final : public Preprocessor {
 public:
  std::string_view family() const override { return "raw"; }

  ResolvedParams resolve(Modality modality, std::string_view kwargs) const override {
    require_supported(modality);
    if (!parse_object(kwargs, "mm_processor_kwargs").empty()) {
      throw Error(ErrorCode::invalid_argument,
                  "this encoder takes no preprocessing parameters (mm_processor_kwargs)");
    }
    return {};
  }

  std::uint64_t bytes_beside(std::uint32_t width, std::uint32_t height,
                             const ResolvedParams&) const override {
    return std::uint64_t{3} * width * height;
  }

  PreprocessedItem run(const RgbImage& image, const ResolvedParams&) const override {
    PreprocessedItem item;
    item.tensors.push_back(
        {"pixels", {std::int64_t{image.height}, std::int64_t{image.width}, 3}, image.pixels});
    return item;
  }

  std::vector<PipelineVersion> versions() const override { return {{"raw", 1}}; }
};

}  // namespace

std::unique_ptr<Preprocessor> make_raw_preprocessor() {
  return std::make_unique<RawPreprocessor>();
}

}  // namespace vitrove
