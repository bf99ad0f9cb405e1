// "did you mean": the name that a mistyped word is nearest to.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vitrove::cli {

// Empty when none is near: a third of the word may be wrong. Two letters that changed places are
// one mistake.
std::string nearest(std::string_view word, std::span<const std::string> names);

}  // namespace vitrove::cli
