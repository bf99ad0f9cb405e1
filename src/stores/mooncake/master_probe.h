// Whether somebody listens where the master should be. Mooncake's own set-up tries a dead master
// for a minute and a half, and each of its calls for seconds; a bare connection tells at once.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>

namespace vitrove::mooncake {

// Empty when a connection could be made, else why not, in plain words. Blocks for `timeout` at
// most, and not when it is cancelled. An address that is not HOST:PORT (etcd://…, for several
// masters) is taken to be there: only Mooncake can tell.
std::string why_unreachable(const std::string& address, std::chrono::milliseconds timeout,
                            const std::stop_token& cancel = {});

}  // namespace vitrove::mooncake
