// What the families share in reading parameters: from JSON with messages that name the parameter,
// and back from ResolvedParams.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "preprocess/resample_filter.h"
#include "vitrove/params.h"

namespace vitrove {

// Where values come from decides what is unknown: a file may hold keys that do not concern us, a
// request may not.
enum class ParamSource : std::uint8_t { file, request };

// Both throw Error{invalid_argument}.
[[noreturn]] void refuse_params(const std::string& message);
[[noreturn]] void refuse_param_type(const std::string& name, const std::string& expected);

// One value each; what does not fit is refused.
bool read_bool(const std::string& name, const nlohmann::json& value);
double read_number(const std::string& name, const nlohmann::json& value);
std::int64_t read_whole(const std::string& name, const nlohmann::json& value, std::int64_t least,
                        std::int64_t most);
Resampling read_resampling(const std::string& name, const nlohmann::json& value);
std::array<double, 3> read_channels(const std::string& name, const nlohmann::json& value);

// The error about parameters that a family lacks; `unknown` is what strangers wrote.
[[noreturn]] void refuse_unknown_params(std::string_view family, std::vector<std::string> unknown,
                                        const std::string& known);
std::string join_names(const std::vector<std::string>& names);

// A step that a file asks for and that we cannot do, such as do_pad.
bool asks_for_a_step(const std::string& name, const nlohmann::json& value);

// Takes parameters out of a JSON object one by one; null means the default stays.
class ParamTaker {
 public:
  ParamTaker(const nlohmann::json& object, ParamSource source) : rest_(object), source_(source) {}

  // `read` turns the value into what `to` becomes.
  template <typename Value, typename Read>
  void take(const char* name, Value& to, Read read) {
    const nlohmann::json value = take(name);
    if (!value.is_null()) to = read(name, value);
  }
  // Null for what is not there.
  nlohmann::json take(const char* name);
  // The values of the model's own shape: a request may name them, not change them.
  void take_fixed(const char* name, std::uint32_t& to, std::int64_t least, std::int64_t most);
  // What other code takes from; `names` are what it knows.
  nlohmann::json& rest(std::initializer_list<const char*> names);

  ParamSource source() const { return source_; }
  // Refuses what is left.
  void finish(std::string_view family) const;

 private:
  nlohmann::json rest_;
  ParamSource source_;
  std::set<std::string> known_;
};

// Throws Error{internal} for what resolve() did not put there.
class ResolvedReader {
 public:
  explicit ResolvedReader(const ResolvedParams& params) : params_(params) {}

  template <typename Value>
  Value get(const std::string& name) const {
    const auto found = params_.values.find(name);
    if (found != params_.values.end()) {
      if (const auto* value = std::get_if<Value>(&found->second)) return *value;
    }
    fail(name);
  }
  std::uint32_t edge(const std::string& name) const {
    return static_cast<std::uint32_t>(get<std::int64_t>(name));
  }
  std::array<double, 3> channels(const std::string& name) const;
  bool has(const std::string& name) const { return params_.values.contains(name); }

 private:
  [[noreturn]] static void fail(const std::string& name);

  const ResolvedParams& params_;
};

}  // namespace vitrove
