#include <algorithm>
#include <charconv>

#include "stores/store_name.h"
#include "vitrove/embedding_store_factory.h"
#include "vitrove/error.h"
#include "vitrove/units.h"

namespace vitrove {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, "store option '" + name + "': " + why);
}

template <typename Parse>
auto parsed(const std::string& name, const std::string& text, Parse parse) {
  try {
    return parse(text);
  } catch (const Error& error) {
    refuse(name, error.what());
  }
}

}  // namespace

const std::string* StoreOptions::find(const std::string& name) {
  if (std::ranges::find(known_, name) == known_.end()) known_.push_back(name);
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

std::string StoreOptions::text(const std::string& name, const std::string& fallback) {
  const std::string* value = find(name);
  return value == nullptr ? fallback : *value;
}

std::uint64_t StoreOptions::bytes(const std::string& name, std::uint64_t fallback) {
  const std::string* value = find(name);
  return value == nullptr ? fallback : parsed(name, *value, parse_bytes);
}

std::chrono::microseconds StoreOptions::duration(const std::string& name,
                                                 std::chrono::microseconds fallback) {
  const std::string* value = find(name);
  return value == nullptr ? fallback : parsed(name, *value, parse_duration);
}

std::int64_t StoreOptions::integer(const std::string& name, std::int64_t fallback) {
  const std::string* value = find(name);
  if (value == nullptr) return fallback;
  std::int64_t number = 0;
  const char* const end = value->data() + value->size();
  const auto [stop, error] = std::from_chars(value->data(), end, number);
  if (error != std::errc{} || stop != end) refuse(name, "'" + *value + "' is not a whole number");
  return number;
}

bool StoreOptions::flag(const std::string& name, bool fallback) {
  const std::string* value = find(name);
  if (value == nullptr) return fallback;
  const std::string word = lower_case(*value);
  if (word == "true" || word == "1" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "0" || word == "no" || word == "off") return false;
  refuse(name, "'" + *value + "' is neither true nor false");
}

void StoreOptions::reject_unknown() const {
  for (const auto& [name, value] : values_) {
    if (std::ranges::find(known_, name) != known_.end()) continue;
    std::vector<std::string> known = known_;
    std::ranges::sort(known);
    std::string list;
    for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
    refuse(name, known.empty() ? "unknown; there are no options" : "unknown; known are " + list);
  }
}

}  // namespace vitrove
