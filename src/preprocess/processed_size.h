// How large an item becomes for the model: what all families say about it in the same way.
#pragma once

#include <cstdint>
#include <string>

#include "preprocess/resize.h"

namespace vitrove {

// A small file may be blown up (B83); where the model's own parameters leave sizes open, no picture
// becomes larger than this.
constexpr std::uint64_t most_open_pixels = 16'777'216;

constexpr std::uint64_t area(const Size& size) { return std::uint64_t{size.width} * size.height; }

// Throws Error{too_large}: `what` would be beyond `limit`, for the model.
[[noreturn]] void refuse_processed_size(const std::string& what, std::uint64_t limit,
                                        const std::string& unit);

}  // namespace vitrove
