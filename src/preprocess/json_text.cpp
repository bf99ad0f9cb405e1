#include "preprocess/json_text.h"

#include <nlohmann/json.hpp>

#include "vitrove/error.h"

namespace vitrove {

nlohmann::json parse_object(std::string_view text, const std::string& what) {
  if (text.empty()) return nlohmann::json::object();
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  if (!value.is_object()) {
    throw Error(ErrorCode::invalid_argument, what + " must be a JSON object");
  }
  return value;
}

}  // namespace vitrove
