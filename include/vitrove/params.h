// Resolved parameters: every setting that shapes a preprocessed item, with its effective value.
//
// A parameter left at its default and the same value given explicitly make the same ResolvedParams
// (field case B22), so a Preprocessor fills in every name it knows before anything is hashed.
// `canonical()` is a typed, length-framed byte string, sorted by name: 1 and 1.0 and "1" and true
// differ, and no two different sets of parameters encode alike (field cases B18, B21). -0.0 counts
// as 0.0; NaN is refused with Error{invalid_argument}, since it equals nothing, not even itself.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace vitrove {

using ParamValue = std::variant<bool, std::int64_t, double, std::string, std::vector<double>>;

struct ResolvedParams {
  std::map<std::string, ParamValue> values;

  std::string canonical() const;
  bool operator==(const ResolvedParams&) const = default;
};

}  // namespace vitrove
