// Where this checkout and this build lie. Functions and not macros, so that no other object depends
// on the folder it is built in (a compiler cache serves a clone elsewhere).
#pragma once

#include <filesystem>

namespace vitrove::test {

std::filesystem::path source_dir();
std::filesystem::path binary_dir();

}  // namespace vitrove::test
