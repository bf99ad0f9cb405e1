// Options of the stub encoder; what each means is told in vitrove/encoder.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <string_view>

#include "vitrove/types.h"

namespace vitrove {

enum class StubFailure : std::uint8_t { none, error, nan, short_rows };

struct StubOptions {
  std::uint32_t dim = 64;
  std::uint32_t min_tokens = 16;
  std::uint32_t max_tokens = 16;
  std::uint64_t seed = 1;
  DType dtype = DType::float32;
  std::chrono::milliseconds delay{0};
  StubFailure failure = StubFailure::none;
  std::uint64_t fail_count = std::numeric_limits<std::uint64_t>::max();
};

// "dim=64,tokens=16-4096,fail=nan". Throws Error{invalid_argument} naming the option at fault.
StubOptions parse_stub_options(std::string_view text);

}  // namespace vitrove
