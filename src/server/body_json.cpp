#include "server/body_json.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/json/basic_parser_impl.hpp>

#include "vitrove/error.h"

// Read by Boost.JSON's parser and not by nlohmann's: a body is mostly one long string, and it reads
// sixteen bytes of that at a time.

namespace vitrove {
namespace {

using boost::system::error_code;
using nlohmann::json;

constexpr std::size_t max_depth = 16;
constexpr std::size_t most_echoed = 64;
constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

// What the parser calls; the names are its own.
class TreeBuilder {
 public:
  using Text = boost::json::string_view;
  static constexpr std::size_t max_object_size = no_limit;
  static constexpr std::size_t max_array_size = no_limit;
  static constexpr std::size_t max_key_size = no_limit;
  static constexpr std::size_t max_string_size = no_limit;

  explicit TreeBuilder(std::size_t max_values) : values_left_(max_values) {}

  json take() { return std::move(root_); }
  bool has_too_many() const { return has_too_many_; }
  bool has_too_large_number() const { return has_too_large_number_; }
  // The name that an object has a second time.
  const std::optional<std::string>& repeated_name() const { return repeated_name_; }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }

  bool on_object_begin(error_code& error) { return open(json::object(), error); }
  bool on_array_begin(error_code& error) { return open(json::array(), error); }
  bool on_object_end(std::size_t, error_code&) { return close(); }
  bool on_array_end(std::size_t, error_code&) { return close(); }

  bool on_key_part(Text part, std::size_t, error_code&) { return append(key_, part); }
  bool on_key(Text part, std::size_t, error_code&) { return append(key_, part); }
  bool on_string_part(Text part, std::size_t, error_code&) { return append(text_, part); }
  bool on_string(Text part, std::size_t, error_code& error) {
    append(text_, part);
    return add(std::exchange(text_, {}), error) != nullptr;
  }

  bool on_number_part(Text part, error_code&) { return append(text_, part); }
  bool on_int64(std::int64_t value, Text, error_code& error) { return number(value, error); }
  bool on_uint64(std::uint64_t value, Text, error_code& error) { return number(value, error); }
  // The parser's own value may be off by one in the last place.
  bool on_double(double about, Text part, error_code& error) {
    append(text_, part);
    double value = 0;
    const char* const end = text_.data() + text_.size();
    const auto [rest, fault] = std::from_chars(text_.data(), end, value);
    if (fault == std::errc::result_out_of_range) return out_of_range(about, error);
    if (fault != std::errc() || rest != end) return stop(error);
    return number(value, error);
  }

  bool on_bool(bool value, error_code& error) { return add(value, error) != nullptr; }
  bool on_null(error_code& error) { return add(nullptr, error) != nullptr; }
  bool on_comment_part(Text, error_code&) { return true; }
  bool on_comment(Text, error_code&) { return true; }

 private:
  static bool append(std::string& text, Text part) {
    text.append(part.data(), part.size());
    return true;
  }
  static bool stop(error_code& error) {
    error = boost::system::errc::make_error_code(boost::system::errc::value_too_large);
    return false;
  }

  // What is too small for a double is zero, as for any other reader of JSON.
  bool out_of_range(double about, error_code& error) {
    has_too_large_number_ = std::abs(about) > 1;
    return has_too_large_number_ ? stop(error) : number(std::copysign(0.0, about), error);
  }

  template <typename Number>
  bool number(Number value, error_code& error) {
    text_.clear();
    return add(value, error) != nullptr;
  }
  bool open(json value, error_code& error) {
    json* const place = add(std::move(value), error);
    if (place != nullptr) open_.push_back(place);
    return place != nullptr;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  // Where the value stands now. A container stays where it is while it is open: nothing is added
  // beside it.
  json* add(json value, error_code& error) {
    if (values_left_ == 0) {
      has_too_many_ = true;
      stop(error);
      return nullptr;
    }
    --values_left_;
    if (open_.empty()) return &(root_ = std::move(value));
    json& parent = *open_.back();
    if (parent.is_array()) return &parent.emplace_back(std::move(value));
    return add_field(parent, std::move(value), error);
  }

  json* add_field(json& parent, json value, error_code& error) {
    const auto [place, is_new] = parent.emplace(std::exchange(key_, {}), std::move(value));
    if (is_new) return &*place;
    repeated_name_ = place.key();
    stop(error);
    return nullptr;
  }

  std::size_t values_left_;
  bool has_too_many_ = false;
  bool has_too_large_number_ = false;
  std::optional<std::string> repeated_name_;
  json root_;
  std::vector<json*> open_;
  std::string key_;
  std::string text_;
};

[[noreturn]] void refuse_json(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message);
}

}  // namespace

json parse_body_json(std::string_view text, std::size_t max_values) {
  boost::json::parse_options options;
  options.max_depth = max_depth;
  boost::json::basic_parser<TreeBuilder> parser(options, max_values);
  error_code error;
  const std::size_t read = parser.write_some(/*more=*/false, text.data(), text.size(), error);
  if (parser.handler().has_too_many()) {
    throw Error(ErrorCode::too_large,
                "the body has more than " + std::to_string(max_values) + " JSON values");
  }
  if (parser.handler().has_too_large_number()) {
    refuse_json("a number in the body is larger than a double can hold");
  }
  if (const auto& name = parser.handler().repeated_name()) {
    refuse_json("the field \"" + name->substr(0, most_echoed) + "\" is there twice");
  }
  if (error == boost::json::error::too_deep) refuse_json("the JSON is nested too deeply");
  if (error || read < text.size()) refuse_json("the body is not valid JSON");
  json body = parser.handler().take();
  if (!body.is_object()) refuse_json("the body must be a JSON object");
  return body;
}

}  // namespace vitrove
