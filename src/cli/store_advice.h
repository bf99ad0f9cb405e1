// What an operator can do about a store that does not work.
#pragma once

#include <string_view>

namespace vitrove::cli {

// `store`: its name. `trouble`: what it says is wrong. Empty when nothing is known that helps.
std::string_view advice_for(std::string_view store, std::string_view trouble);

}  // namespace vitrove::cli
