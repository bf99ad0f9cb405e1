#include "server/encode_body.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "server/body_json.h"
#include "server/http_message.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

using nlohmann::json;

// More than an item with all its settings has.
constexpr std::size_t values_an_item = 128;
constexpr std::size_t values_a_request = 256;
constexpr std::size_t max_kwargs_bytes = 16 * 1024;
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

void refuse_unknown(const json& object, std::span<const std::string_view> known,
                    const std::string& where, int item = -1) {
  for (const auto& field : object.items()) {
    const std::string_view name = field.key();
    if (std::ranges::find(known, name) != known.end()) continue;
    refuse("unknown field \"" + std::string(name.substr(0, max_name_echoed)) + "\"" + where, item);
  }
}

// Absent and null are the same: the default.
json* find(json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

// Nothing when it is no string.
std::string* text_of(json& value) { return value.get_ptr<std::string*>(); }

std::uint32_t read_integer(json& body, const char* name, std::uint32_t fallback, std::uint32_t low,
                           std::uint32_t high) {
  json* const value = find(body, name);
  if (value == nullptr) return fallback;
  const auto* number = value->get_ptr<const std::int64_t*>();
  if (number == nullptr || *number < low || *number > high) {
    refuse(std::string(name) + " must be an integer from " + std::to_string(low) + " to " +
           std::to_string(high));
  }
  return static_cast<std::uint32_t>(*number);
}

std::optional<Modality> read_modality(json& object, int item = -1) {
  json* const value = find(object, "modality");
  if (value == nullptr) return std::nullopt;
  const std::string* text = text_of(*value);
  const auto modality = text != nullptr ? parse_modality(*text) : std::nullopt;
  if (!modality) refuse("modality must be \"image\", \"video\" or \"audio\"", item);
  return modality;
}

// About what it takes as text: enough to refuse it before it is copied.
std::size_t weight(const json& value) {
  if (const auto* text = value.get_ptr<const std::string*>()) return text->size();
  std::size_t sum = 1;
  if (value.is_structured()) {
    for (const auto& field : value.items()) sum += field.key().size() + weight(field.value());
  }
  return sum;
}

json read_kwargs(json& object, int item = -1) {
  json* const value = find(object, "mm_processor_kwargs");
  if (value == nullptr) return json::object();
  if (!value->is_object()) refuse("mm_processor_kwargs must be an object", item);
  if (weight(*value) > max_kwargs_bytes) {
    throw Error(ErrorCode::too_large,
                "mm_processor_kwargs is longer than " + std::to_string(max_kwargs_bytes) + " bytes",
                {}, item);
  }
  return std::move(*value);
}

ReturnForm read_return(json& body) {
  json* const value = find(body, "return");
  if (value == nullptr) return ReturnForm::metadata;
  const std::string* text = text_of(*value);
  if (text != nullptr && *text == "metadata") return ReturnForm::metadata;
  if (text != nullptr && *text == "safetensors") return ReturnForm::safetensors;
  refuse("return must be \"metadata\" or \"safetensors\"");
}

void read_req_id(json& body, std::string& req_id) {
  json* const value = find(body, "req_id");
  if (value == nullptr) return;
  const std::string* text = text_of(*value);
  if (text == nullptr || !is_valid_req_id(*text)) {
    refuse("req_id must be a string of 1 to 256 printable ASCII characters");
  }
  req_id = *text;
}

Digest256 read_digest(json& value, const char* name, int item) {
  const std::string* text = text_of(value);
  const auto digest = text != nullptr ? parse_digest(*text) : std::nullopt;
  if (!digest) refuse(std::string(name) + " must be a SHA-256 in 64 hex digits", item);
  return *digest;
}

// Takes the text along: it may be most of the body.
void set_url(EncodeItem& item, json& value, int index) {
  std::string* const text = text_of(value);
  if (text == nullptr || text->empty()) {
    refuse("the url of an item must be a string that is not empty", index);
  }
  item.url = std::move(*text);
}

void read_item_object(json& object, json& kwargs, EncodeItem& item, int index) {
  refuse_unknown(object, item_fields, " in an item", index);
  if (json* const url = find(object, "url")) set_url(item, *url, index);
  if (json* const digest = find(object, "digest")) {
    item.digest = read_digest(*digest, "digest", index);
  }
  if (item.url.empty() && !item.digest) refuse("an item needs a url or a digest", index);
  if (const auto own = read_modality(object, index)) item.modality = own;
  kwargs.update(read_kwargs(object, index));
}

EncodeItem read_item(json& value, const std::optional<Modality>& modality, json kwargs, int index) {
  EncodeItem item;
  item.modality = modality;
  if (value.is_object()) {
    read_item_object(value, kwargs, item, index);
  } else if (value.is_string()) {
    set_url(item, value, index);
  } else {
    refuse("an item of mm_items must be a string or an object", index);
  }
  if (!kwargs.empty()) item.mm_processor_kwargs = kwargs.dump();
  return item;
}

void read_items(json& body, std::uint32_t max_items, EncodeBody& parsed) {
  json* const items = find(body, "mm_items");
  if (items == nullptr || !items->is_array()) refuse("mm_items must be an array");
  if (items->empty()) refuse("mm_items is empty");
  if (items->size() > max_items) {
    throw Error(ErrorCode::too_large,
                "mm_items has more than " + std::to_string(max_items) + " items");
  }
  const auto modality = read_modality(body);
  const json kwargs = read_kwargs(body);
  parsed.items.reserve(items->size());
  for (json& item : *items) {
    const int index = static_cast<int>(parsed.items.size());
    parsed.items.push_back(read_item(item, modality, kwargs, index));
  }
}

void read_hashes(json& body, EncodeBody& parsed) {
  json* const hashes = find(body, "hashes");
  if (hashes == nullptr) return;
  if (!hashes->is_array() || hashes->size() != parsed.items.size()) {
    refuse("hashes must be null or an array with one entry an item");
  }
  for (std::size_t i = 0; i < hashes->size(); ++i) {
    if ((*hashes)[i].is_null()) continue;
    const int index = static_cast<int>(i);
    const Digest256 digest = read_digest((*hashes)[i], "hashes", index);
    auto& item = parsed.items[i];
    if (item.digest && *item.digest != digest) refuse("hashes and digest differ", index);
    item.digest = digest;
  }
}

}  // namespace

EncodeBody parse_encode_body(std::string_view text, std::uint32_t max_items, std::string& req_id) {
  json body = parse_body_json(text, values_a_request + values_an_item * max_items);
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
