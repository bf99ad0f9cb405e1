#include "server/encode_body.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include <boost/json.hpp>

#include "server/http_message.h"
#include "vitrove/error.h"

// Boost.JSON and not nlohmann's, which everything else here uses: a body is mostly one long string,
// and this reads it sixteen bytes at a time.

namespace vitrove {
namespace {

namespace json = boost::json;

constexpr std::size_t max_depth = 16;
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

std::string_view view_of(const json::string& text) { return {text.data(), text.size()}; }

json::value parse_json(std::string_view text) {
  json::parse_options options;
  options.max_depth = max_depth;
  boost::system::error_code error;
  json::value body = json::parse({text.data(), text.size()}, error, {}, options);
  if (error == json::error::too_deep) refuse("the JSON is nested too deeply");
  if (error) refuse("the body is not valid JSON");
  if (!body.is_object()) refuse("the body must be a JSON object");
  return body;
}

void refuse_unknown(const json::object& object, std::span<const std::string_view> known,
                    const std::string& where, int item = -1) {
  for (const auto& field : object) {
    const std::string_view name(field.key().data(), field.key().size());
    if (std::ranges::find(known, name) != known.end()) continue;
    refuse("unknown field \"" + std::string(name.substr(0, max_name_echoed)) + "\"" + where, item);
  }
}

// Absent and null are the same: the default.
json::value* find(json::object& object, const char* name) {
  json::value* value = object.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::uint32_t read_integer(json::object& body, const char* name, std::uint32_t fallback,
                           std::uint32_t low, std::uint32_t high) {
  const json::value* value = find(body, name);
  if (value == nullptr) return fallback;
  const std::int64_t* number = value->if_int64();
  if (number == nullptr || *number < low || *number > high) {
    refuse(std::string(name) + " must be an integer from " + std::to_string(low) + " to " +
           std::to_string(high));
  }
  return static_cast<std::uint32_t>(*number);
}

std::optional<Modality> read_modality(json::object& object, int item = -1) {
  const json::value* value = find(object, "modality");
  if (value == nullptr) return std::nullopt;
  const json::string* text = value->if_string();
  const auto modality = text != nullptr ? parse_modality(view_of(*text)) : std::nullopt;
  if (!modality) refuse("modality must be \"image\", \"video\" or \"audio\"", item);
  return modality;
}

json::object read_kwargs(json::object& object, int item = -1) {
  json::value* value = find(object, "mm_processor_kwargs");
  if (value == nullptr) return {};
  if (!value->is_object()) refuse("mm_processor_kwargs must be an object", item);
  return std::move(value->get_object());
}

ReturnForm read_return(json::object& body) {
  const json::value* value = find(body, "return");
  if (value == nullptr) return ReturnForm::metadata;
  const json::string* text = value->if_string();
  if (text != nullptr && view_of(*text) == "metadata") return ReturnForm::metadata;
  if (text != nullptr && view_of(*text) == "safetensors") return ReturnForm::safetensors;
  refuse("return must be \"metadata\" or \"safetensors\"");
}

void read_req_id(json::object& body, std::string& req_id) {
  const json::value* value = find(body, "req_id");
  if (value == nullptr) return;
  const json::string* text = value->if_string();
  if (text == nullptr || !is_valid_req_id(view_of(*text))) {
    refuse("req_id must be a string of 1 to 256 printable ASCII characters");
  }
  req_id = view_of(*text);
}

Digest256 read_digest(const json::value& value, const char* name, int item) {
  const json::string* text = value.if_string();
  const auto digest = text != nullptr ? parse_digest(view_of(*text)) : std::nullopt;
  if (!digest) refuse(std::string(name) + " must be a SHA-256 in 64 hex digits", item);
  return *digest;
}

void set_url(EncodeItem& item, const json::value& value, int index) {
  const json::string* text = value.if_string();
  if (text == nullptr || text->empty()) {
    refuse("the url of an item must be a string that is not empty", index);
  }
  item.url = view_of(*text);
}

void read_item_object(json::object& object, json::object& kwargs, EncodeItem& item, int index) {
  refuse_unknown(object, item_fields, " in an item", index);
  if (const json::value* url = find(object, "url")) set_url(item, *url, index);
  if (const json::value* digest = find(object, "digest")) {
    item.digest = read_digest(*digest, "digest", index);
  }
  if (item.url.empty() && !item.digest) refuse("an item needs a url or a digest", index);
  if (const auto own = read_modality(object, index)) item.modality = own;
  for (auto& field : read_kwargs(object, index)) {
    kwargs.insert_or_assign(field.key(), std::move(field.value()));
  }
}

EncodeItem read_item(json::value& value, const std::optional<Modality>& modality,
                     json::object kwargs, int index) {
  EncodeItem item;
  item.modality = modality;
  if (json::object* object = value.if_object()) {
    read_item_object(*object, kwargs, item, index);
  } else if (value.is_string()) {
    set_url(item, value, index);
  } else {
    refuse("an item must be a string or an object", index);
  }
  if (!kwargs.empty()) item.mm_processor_kwargs = json::serialize(kwargs);
  return item;
}

void read_items(json::object& body, std::uint32_t max_items, EncodeBody& parsed) {
  json::value* value = find(body, "mm_items");
  if (value == nullptr || !value->is_array()) refuse("mm_items must be an array");
  json::array& items = value->get_array();
  if (items.empty()) refuse("mm_items is empty");
  if (items.size() > max_items) {
    throw Error(ErrorCode::too_large,
                "mm_items has more than " + std::to_string(max_items) + " items");
  }
  const auto modality = read_modality(body);
  const json::object kwargs = read_kwargs(body);
  parsed.items.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    parsed.items.push_back(read_item(items[i], modality, kwargs, static_cast<int>(i)));
  }
}

void read_hashes(json::object& body, EncodeBody& parsed) {
  const json::value* value = find(body, "hashes");
  if (value == nullptr) return;
  const json::array* hashes = value->if_array();
  if (hashes == nullptr || hashes->size() != parsed.items.size()) {
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
  json::value value = parse_json(text);
  json::object& body = value.get_object();
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
