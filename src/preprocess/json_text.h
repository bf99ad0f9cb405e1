// JSON that comes as text from outside.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace vitrove {

// An object, empty for empty text. Throws Error{invalid_argument} naming `what` otherwise.
nlohmann::json parse_object(std::string_view text, const std::string& what);

}  // namespace vitrove
