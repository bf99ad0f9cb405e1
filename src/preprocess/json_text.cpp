#include "preprocess/json_text.h"

#include <nlohmann/json.hpp>

#include "vitrove/error.h"

namespace vitrove {

nlohmann::json parse_object(std::string_view text, const std::string& what) {
  if (text.empty()) return nlohmann::json::object();
  try {
    nlohmann::json value = nlohmann::json::parse(text);
    if (value.is_object()) return value;
  } catch (const nlohmann::json::parse_error&) {  // said below
  } catch (const nlohmann::json::out_of_range&) {
    throw Error(ErrorCode::invalid_argument, what + ": a number is larger than a double can hold");
  }
  throw Error(ErrorCode::invalid_argument, what + " must be a JSON object");
}

}  // namespace vitrove
