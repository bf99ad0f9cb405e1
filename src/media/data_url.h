// data: URLs (RFC 2397).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace vitrove {

bool is_data_url(std::string_view url);

// `url` starts with "data:" in any case. Throws Error{invalid_argument} on a malformed URL, a
// corrupt or an empty payload, Error{too_large} beyond `max_bytes`. The declared type is ignored.
std::vector<std::byte> decode_data_url(std::string_view url, std::uint64_t max_bytes);

}  // namespace vitrove
