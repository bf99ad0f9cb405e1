#include "vitrove/types.h"

namespace vitrove {

std::string_view to_string(Modality modality) {
  switch (modality) {
    case Modality::image:
      return "image";
    case Modality::video:
      return "video";
    case Modality::audio:
      return "audio";
  }
  return "unknown";
}

std::optional<Modality> parse_modality(std::string_view text) {
  for (auto modality : {Modality::image, Modality::video, Modality::audio}) {
    if (text == to_string(modality)) return modality;
  }
  return std::nullopt;
}

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "float32";
    case DType::float16:
      return "float16";
    case DType::bfloat16:
      return "bfloat16";
  }
  return "unknown";
}

std::optional<DType> parse_dtype(std::string_view text) {
  for (auto dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    if (text == to_string(dtype)) return dtype;
  }
  return std::nullopt;
}

}  // namespace vitrove
