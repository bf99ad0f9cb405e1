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

// What is bounded, as messages say it, and the option that sets the bound.
struct ProcessedUnit {
  const char* name;
  const char* option;
};
constexpr ProcessedUnit processed_pixels{"pixels", "--max-processed-pixels"};
constexpr ProcessedUnit processed_clip_pixels{"clip pixels", "--max-processed-clip-pixels"};
constexpr ProcessedUnit processed_seconds{"seconds", "--max-processed-seconds"};

// The operator's bound where there is one.
constexpr std::uint64_t bound_or(std::uint64_t by_operator, std::uint64_t by_file) {
  return by_operator != 0 ? by_operator : by_file;
}

// Throws Error{too_large}: `what` would be beyond `limit`, for the model.
[[noreturn]] void refuse_processed_size(const std::string& what, std::uint64_t limit,
                                        const ProcessedUnit& unit);

// Throws Error{invalid_argument} for an operator's bound that nothing can keep, since the model's
// configuration makes `least` of the smallest item.
void check_processed_bound(std::uint64_t by_operator, std::uint64_t least,
                           const ProcessedUnit& unit);

}  // namespace vitrove
