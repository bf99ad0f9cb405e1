// Percent-encoding of URLs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vitrove {

// Nothing when a percent sign is not followed by two hex digits.
std::optional<std::string> percent_decode(std::string_view text);

}  // namespace vitrove
