// A resolver that does not answer (stuck_resolver.cpp): this test program defines getaddrinfo
// itself.
#pragma once

namespace vitrove::testing {

inline constexpr const char* stuck_name = "stuck.invalid";

// While it lives, nobody is told the address of `stuck_name`.
class StuckResolver {
 public:
  StuckResolver();
  ~StuckResolver();
  StuckResolver(const StuckResolver&) = delete;
  StuckResolver& operator=(const StuckResolver&) = delete;

  static int askers();  // who wait now
};

}  // namespace vitrove::testing
