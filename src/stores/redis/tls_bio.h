// A socket as OpenSSL sees it. Its own kind writes in a way that may end the process by SIGPIPE,
// which a library must not risk.
#pragma once

#include <openssl/bio.h>

namespace vitrove::redis {

// Does not own the socket. Null when memory is short.
BIO* make_socket_bio(int socket);

}  // namespace vitrove::redis
