#include "preprocess/json_params.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vitrove/error.h"

namespace vitrove {
namespace {

// Names of strangers are quoted in full only when they are harmless.
std::string printable(const std::string& name) {
  constexpr std::size_t longest = 40;
  std::string result = name.substr(0, longest);
  std::ranges::replace_if(
      result, [](char c) { return c < 0x20 || c > 0x7e || c == '/'; }, '?');
  return name.size() > longest ? result + "..." : result;
}

}  // namespace

void refuse_params(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message);
}

void refuse_param_type(const std::string& name, const std::string& expected) {
  refuse_params("parameter " + name + " must be " + expected);
}

bool read_bool(const std::string& name, const nlohmann::json& value) {
  if (!value.is_boolean()) refuse_param_type(name, "true or false");
  return value.get<bool>();
}

double read_number(const std::string& name, const nlohmann::json& value) {
  if (!value.is_number()) refuse_param_type(name, "a number");
  const auto number = value.get<double>();
  if (!std::isfinite(number)) refuse_param_type(name, "a finite number");
  return number;
}

std::int64_t read_whole(const std::string& name, const nlohmann::json& value, std::int64_t least,
                        std::int64_t most) {
  const bool is_good = value.is_number_integer() && value >= least && value <= most;
  if (is_good) return value.get<std::int64_t>();
  refuse_param_type(name,
                    "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
}

Resampling read_resampling(const std::string& name, const nlohmann::json& value) {
  constexpr const char* expected =
      "0 (nearest), 1 (lanczos), 2 (bilinear), 3 (bicubic), 4 (box) or 5 (hamming)";
  if (!value.is_number_integer() || value < 0 || value > 5) refuse_param_type(name, expected);
  return static_cast<Resampling>(value.get<std::int64_t>());
}

std::array<double, 3> read_channels(const std::string& name, const nlohmann::json& value) {
  if (value.is_number()) {
    const double number = read_number(name, value);
    return {number, number, number};
  }
  if (!value.is_array() || value.size() != 3) {
    refuse_param_type(name, "a number or three numbers");
  }
  std::array<double, 3> result{};
  for (std::size_t i = 0; i < 3; ++i) result[i] = read_number(name, value[i]);
  return result;
}

std::string join_names(const std::vector<std::string>& names) {
  std::string result;
  for (const std::string& name : names) result += (result.empty() ? "" : ", ") + name;
  return result;
}

void refuse_unknown_params(std::string_view family, std::vector<std::string> unknown,
                           const std::string& known) {
  constexpr std::size_t most = 5;
  if (unknown.size() > most) unknown.resize(most);
  for (std::string& name : unknown) name = printable(name);
  refuse_params("unknown preprocessing parameters for " + std::string(family) + ": " +
                join_names(unknown) + " (known: " + known + ")");
}

bool asks_for_a_step(const std::string& name, const nlohmann::json& value) {
  return name.starts_with("do_") && value.is_boolean() && value.get<bool>();
}

nlohmann::json ParamTaker::take(const char* name) {
  known_.insert(name);
  const auto found = rest_.find(name);
  if (found == rest_.end()) return nullptr;
  nlohmann::json value = std::move(*found);
  rest_.erase(found);
  return value;
}

void ParamTaker::take_fixed(const char* name, std::uint32_t& to, std::int64_t least,
                            std::int64_t most) {
  std::uint32_t value = to;
  take(name, value, [&](const std::string& of, const nlohmann::json& given) {
    return static_cast<std::uint32_t>(read_whole(of, given, least, most));
  });
  if (source_ == ParamSource::request && value != to) {
    refuse_params("parameter " + std::string(name) + " is the model's own: it is " +
                  std::to_string(to) + " and cannot be changed");
  }
  to = value;
}

nlohmann::json& ParamTaker::rest(std::initializer_list<const char*> names) {
  known_.insert(names.begin(), names.end());
  return rest_;
}

void ParamTaker::finish(std::string_view family) const {
  std::vector<std::string> unknown;
  for (const auto& [name, value] : rest_.items()) {
    if (value.is_null()) continue;
    if (source_ == ParamSource::request || asks_for_a_step(name, value)) unknown.push_back(name);
  }
  if (unknown.empty()) return;
  refuse_unknown_params(family, std::move(unknown), join_names({known_.begin(), known_.end()}));
}

std::array<double, 3> ResolvedReader::channels(const std::string& name) const {
  const auto list = get<std::vector<double>>(name);
  if (list.size() != 3) fail(name);
  return {list[0], list[1], list[2]};
}

void ResolvedReader::fail(const std::string& name) {
  throw Error(ErrorCode::internal, "preprocessing parameters are not resolved", name);
}

}  // namespace vitrove
