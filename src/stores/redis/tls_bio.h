// A socket as OpenSSL sees it. Its own kind writes in a way that may end the process by SIGPIPE,
// which a library must not risk.
#pragma once

#include <openssl/bio.h>

namespace vitrove::redis {

// Owns neither the socket nor the place of its number, which both must outlive it. Null when memory
// is short.
BIO* make_socket_bio(const int* socket);

}  // namespace vitrove::redis
