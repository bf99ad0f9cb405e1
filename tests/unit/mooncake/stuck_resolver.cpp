#include "unit/mooncake/stuck_resolver.h"

#include <atomic>
#include <string_view>

#include <dlfcn.h>
#include <netdb.h>

namespace {

std::atomic<bool> is_stuck{false};
std::atomic<int> waiting{0};

}  // namespace

extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const bool is_numeric = hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0;
  if (!is_numeric && name != nullptr && std::string_view(name) == vitrove::testing::stuck_name) {
    ++waiting;
    is_stuck.wait(true);
    --waiting;
    return EAI_NONAME;
  }
  return real(name, service, hints, found);
}

namespace vitrove::testing {

StuckResolver::StuckResolver() { is_stuck = true; }

StuckResolver::~StuckResolver() {
  is_stuck = false;
  is_stuck.notify_all();
}

int StuckResolver::askers() { return waiting; }

}  // namespace vitrove::testing
