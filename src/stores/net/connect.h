// A TCP connection to whichever address of a server answers.
#pragma once

#include <span>
#include <stop_token>

#include "base/unique_fd.h"
#include "stores/net/resolver.h"

namespace vitrove::net {

// The first address that answers; no descriptor and `fault` filled in when none does. Each has its
// share of the time, so that one which swallows packets leaves some for the others.
UniqueFd connect_to_any(std::span<const Address> addresses, Clock::time_point deadline,
                        const std::stop_token& cancel, Fault& fault);

}  // namespace vitrove::net
