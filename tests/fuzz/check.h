// What a fuzz target says when a property does not hold.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>

namespace vitrove::fuzz {

inline void check(bool holds, const char* property,
                  std::source_location where = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%u: does not hold: %s\n", where.file_name(),
               static_cast<unsigned>(where.line()), property);
  std::abort();
}

}  // namespace vitrove::fuzz
