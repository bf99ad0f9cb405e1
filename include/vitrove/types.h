// The few words that every part shares: modality, dtype, grid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace vitrove {

// Values are part of the key encoding and of the value format: never renumber.
enum class Modality : std::uint8_t { image = 1, video = 2, audio = 3 };

// Element type of cached rows. Values are part of the value format: never renumber.
enum class DType : std::uint8_t { float32 = 1, float16 = 2, bfloat16 = 3 };

std::string_view to_string(Modality modality);
std::optional<Modality> parse_modality(std::string_view text);

// "float32", "float16", "bfloat16" (PyTorch's names).
std::string_view to_string(DType dtype);
std::optional<DType> parse_dtype(std::string_view text);

// Bytes of one element.
constexpr std::size_t element_size(DType dtype) { return dtype == DType::float32 ? 4 : 2; }

// Patch grid of an item as the model sees it: temporal, height, width, in patches (or feature map
// cells). For an image t is 1.
struct Grid {
  std::uint32_t t = 0;
  std::uint32_t h = 0;
  std::uint32_t w = 0;
  bool operator==(const Grid&) const = default;
};

}  // namespace vitrove
