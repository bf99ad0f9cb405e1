// How whoever reads a model directory says that its vitrove.json is at fault.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "vitrove/error.h"

namespace vitrove {

// Always throws Error{invalid_argument}; `detail` is for the log alone.
[[noreturn]] inline void refuse_config(const std::string& what, std::string detail = {}) {
  throw Error(ErrorCode::invalid_argument, "vitrove.json: " + what, std::move(detail));
}

inline std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

}  // namespace vitrove
