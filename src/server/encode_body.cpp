#include "server/encode_body.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "server/http_message.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

using nlohmann::json;

constexpr int max_depth = 16;
constexpr std::uint32_t max_parts = 65'536;
constexpr std::size_t max_name_echoed = 64;

constexpr std::array<std::string_view, 8> request_fields = {
    "mm_items", "modality", "req_id", "num_parts", "part_idx", "hashes", "mm_processor_kwargs",
    "return"};
constexpr std::array<std::string_view, 4> item_fields = {"url", "digest", "modality",
                                                         "mm_processor_kwargs"};

[[noreturn]] void refuse(const std::string& message, int item = -1) {
  throw Error(ErrorCode::invalid_argument, message, {}, item);
}

json parse_json(std::string_view text) {
  const auto limit_depth = [](int depth, json::parse_event_t, json&) {
    if (depth > max_depth) refuse("the JSON is nested too deeply");
    return true;
  };
  json body = json::parse(text, limit_depth, /*allow_exceptions=*/false);
  if (body.is_discarded()) refuse("the body is not valid JSON");
  if (!body.is_object()) refuse("the body must be a JSON object");
  return body;
}

void refuse_unknown(const json& object, std::span<const std::string_view> known,
                    const std::string& where, int item = -1) {
  for (const auto& [name, value] : object.items()) {
    if (std::ranges::find(known, name) != known.end()) continue;
    refuse("unknown field \"" + name.substr(0, max_name_echoed) + "\"" + where, item);
  }
}

// Absent and null are the same: the default.
json* find(json& object, const char* name) {
  const auto at = object.find(name);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

std::uint32_t read_integer(json& body, const char* name, std::uint32_t fallback, std::uint32_t low,
                           std::uint32_t high) {
  const json* value = find(body, name);
  if (value == nullptr) return fallback;
  const bool in_range = value->is_number_integer() && *value >= low && *value <= high;
  if (!in_range) {
    refuse(std::string(name) + " must be an integer from " + std::to_string(low) + " to " +
           std::to_string(high));
  }
  return value->get<std::uint32_t>();
}

std::optional<Modality> read_modality(json& object, int item = -1) {
  const json* value = find(object, "modality");
  if (value == nullptr) return std::nullopt;
  const auto modality =
      value->is_string() ? parse_modality(value->get_ref<const std::string&>()) : std::nullopt;
  if (!modality) refuse("modality must be \"image\", \"video\" or \"audio\"", item);
  return modality;
}

json read_kwargs(json& object, int item = -1) {
  json* value = find(object, "mm_processor_kwargs");
  if (value == nullptr) return json::object();
  if (!value->is_object()) refuse("mm_processor_kwargs must be an object", item);
  return std::move(*value);
}

ReturnForm read_return(json& body) {
  const json* value = find(body, "return");
  if (value == nullptr || *value == "metadata") return ReturnForm::metadata;
  if (*value == "safetensors") return ReturnForm::safetensors;
  refuse("return must be \"metadata\" or \"safetensors\"");
}

void read_req_id(json& body, std::string& req_id) {
  const json* value = find(body, "req_id");
  if (value == nullptr) return;
  if (!value->is_string() || !is_valid_req_id(value->get_ref<const std::string&>())) {
    refuse("req_id must be a string of 1 to 256 printable ASCII characters");
  }
  req_id = value->get<std::string>();
}

Digest256 read_digest(const json& value, const char* name, int item) {
  const auto digest =
      value.is_string() ? parse_digest(value.get_ref<const std::string&>()) : std::nullopt;
  if (!digest) refuse(std::string(name) + " must be a SHA-256 in 64 hex digits", item);
  return *digest;
}

void set_url(EncodeItem& item, json& value, int index) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
    refuse("the url of an item must be a string that is not empty", index);
  }
  item.url = std::move(value.get_ref<std::string&>());
}

EncodeItem read_item(json& value, const std::optional<Modality>& modality, const json& kwargs,
                     int index) {
  EncodeItem item;
  item.modality = modality;
  json merged = kwargs;
  if (value.is_object()) {
    refuse_unknown(value, item_fields, " in an item", index);
    if (json* url = find(value, "url")) set_url(item, *url, index);
    if (const json* digest = find(value, "digest")) {
      item.digest = read_digest(*digest, "digest", index);
    }
    if (item.url.empty() && !item.digest) refuse("an item needs a url or a digest", index);
    if (const auto own = read_modality(value, index)) item.modality = own;
    merged.update(read_kwargs(value, index));
  } else if (value.is_string()) {
    set_url(item, value, index);
  } else {
    refuse("an item must be a string or an object", index);
  }
  if (!merged.empty()) {
    item.mm_processor_kwargs = merged.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return item;
}

void read_items(json& body, std::uint32_t max_items, EncodeBody& parsed) {
  json* items = find(body, "mm_items");
  if (items == nullptr || !items->is_array()) refuse("mm_items must be an array");
  if (items->empty()) refuse("mm_items is empty");
  if (items->size() > max_items) {
    throw Error(ErrorCode::too_large,
                "mm_items has more than " + std::to_string(max_items) + " items");
  }
  const auto modality = read_modality(body);
  const json kwargs = read_kwargs(body);
  parsed.items.reserve(items->size());
  for (std::size_t i = 0; i < items->size(); ++i) {
    parsed.items.push_back(read_item((*items)[i], modality, kwargs, static_cast<int>(i)));
  }
}

void read_hashes(json& body, EncodeBody& parsed) {
  const json* hashes = find(body, "hashes");
  if (hashes == nullptr) return;
  if (!hashes->is_array() || hashes->size() != parsed.items.size()) {
    refuse("hashes must be null or an array with one entry an item");
  }
  for (std::size_t i = 0; i < hashes->size(); ++i) {
    const json& value = (*hashes)[i];
    if (value.is_null()) continue;
    const int index = static_cast<int>(i);
    const Digest256 digest = read_digest(value, "hashes", index);
    auto& item = parsed.items[i];
    if (item.digest && *item.digest != digest) refuse("hashes and digest differ", index);
    item.digest = digest;
  }
}

}  // namespace

EncodeBody parse_encode_body(std::string_view text, std::uint32_t max_items, std::string& req_id) {
  json body = parse_json(text);
  read_req_id(body, req_id);
  refuse_unknown(body, request_fields, "");
  EncodeBody parsed;
  parsed.req_id = req_id;
  parsed.num_parts = read_integer(body, "num_parts", 1, 1, max_parts);
  parsed.part_idx = read_integer(body, "part_idx", 0, 0, max_parts - 1);
  if (parsed.part_idx >= parsed.num_parts) refuse("part_idx must be less than num_parts");
  parsed.form = read_return(body);
  read_items(body, max_items, parsed);
  read_hashes(body, parsed);
  return parsed;
}

}  // namespace vitrove
