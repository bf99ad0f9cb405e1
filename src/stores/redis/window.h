// How much a server may owe us at a time.
#pragma once

#include <cstdint>

namespace vitrove::redis {

// Bytes of values to be asked for over this socket before they have come. Enough that the server
// has the next one to work on and the line between is full; little enough that what it prepares for
// us is still in its CPU's cache when it is sent.
std::uint64_t owed_bytes_window(int socket);

}  // namespace vitrove::redis
