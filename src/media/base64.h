// Base64 as it arrives in data: URLs.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace vitrove {

// Standard alphabet. Blanks and line breaks are passed over anywhere; padding may be missing but
// not be half there. Nothing on any other character, on padding within the text, on a single
// left-over character, and on left-over bits that are not zero: what is corrupt is never cut short.
std::optional<std::vector<std::byte>> decode_base64(std::string_view text);

// The most bytes that a text of this length can hold.
constexpr std::size_t max_decoded_size(std::size_t text_size) { return text_size / 4 * 3 + 3; }

}  // namespace vitrove
