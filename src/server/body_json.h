// The JSON of a request's body as a tree, made within bounds.
//
//  - What is parsed is bounded in values and not only in bytes: millions of small ones would take
//    many times the memory of their text, before anybody could say that they are too many.
//  - Numbers are rounded exactly, as everywhere else here: a setting given over HTTP makes the same
//    key as the same one from a file.
#pragma once

#include <cstddef>
#include <string_view>

#include <nlohmann/json.hpp>

namespace vitrove {

// An object. Throws Error{invalid_argument}, or {too_large} beyond `max_values`. A name that an
// object has twice is invalid, too: readers do not agree on which of them counts, and what a proxy
// has checked may not be what is served.
nlohmann::json parse_body_json(std::string_view text, std::size_t max_values);

}  // namespace vitrove
