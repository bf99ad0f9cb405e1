// The Redis store: values in a Redis or Valkey server, or in a cluster of them.
//
//   redis://user:password@host:6379/0?timeout=2s&pool=64&prefix=vitrove:&ttl=7d
//   rediss://host?tls_ca=/etc/ssl/redis-ca.pem           TLS
//   redis+cluster://a:6379,b:6379                        any nodes of a cluster
//   rediss+cluster://a:6379                              a cluster with TLS
//
// valkey:, valkeys:, valkey+cluster: and valkeys+cluster: are the same.
//
// What stands in a login and is no letter, digit or "-._~" has to be percent-encoded. Options:
//
//   connect_timeout=1s    until a new connection is ready for use (name, TCP, TLS, login)
//   timeout=2s            how long a server may be silent while it owes us something
//   pool=64               connections to each server at most, made when they are needed and
//                         closed to eight when unused; puts use eight (half of the pool, if that
//                         is less), and so do gets with values of more than 832 KiB
//   prefix=vitrove:       before each key; nothing without it is ever touched
//   ttl=0                 how long a value lives after its put; 0: until the server evicts it
//   max_value_bytes=512MiB  larger values are not put; the server's own limit counts as well
//   tls_ca, tls_cert, tls_key=FILE, tls_name=NAME, tls_verify=true
//   strict=false          a server that cannot be reached at the start is an error
//
// A value is a string under `prefix` + key, a claim a string under `prefix` + "claim:" + key.
// Values go from the socket straight into the buffers of a get, and from the buffers of a put to
// the socket; TLS decrypts in between. Puts are SET, with NX if_absent, so that a value is never
// seen half-written. Batches are pipelined, with so many values on the way as keep server and line
// busy; a batch of small values (512 KiB or more of them) comes over up to four connections, which
// a server gives more of its time than one. A value of more than 832 KiB is read in parts (STRLEN,
// then GETRANGE): one that is replaced meanwhile may come as a mixture of both, which the checksum
// in its header does not fit. A server that refuses these commands, by its ACL or because it (or a
// proxy) does not know them, gives such values whole: health() says so, and five minutes later
// parts are tried again. batch_is_exist() needs STRLEN.
//
// A call uses a connection by itself and leaves it only when every answer has come: a connection
// that owes answers when a call ends is closed, so that a late reply can never answer another
// command. A server that cannot be reached, or is silent for too long, is left alone: calls are
// answered `unavailable` at once, and a thread of the store tries again for ever, with growing and
// random pauses of 5 s at most.
//
// maxmemory: what the server evicted is absent; what it refuses is `no_space`. A replica refuses
// puts: `denied`. Clusters: commands go to the server of their key's slot; MOVED and ASK are
// followed, with the same TLS, login and timeouts, and the slots are learned anew. Sentinel is not
// supported: name the server itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vitrove/embedding_store.h"

namespace vitrove {

struct RedisStoreOptions {
  // Host and port; one, or with `cluster` any nodes of it.
  std::vector<std::pair<std::string, int>> servers;
  bool cluster = false;
  std::string user;      // empty: the server's default user
  std::string password;  // empty: no login
  int database = 0;

  std::chrono::milliseconds connect_timeout = std::chrono::seconds(1);
  std::chrono::milliseconds timeout = std::chrono::seconds(2);
  std::uint32_t pool = 64;  // at least 2
  std::string prefix = "vitrove:";
  std::chrono::milliseconds ttl{0};
  std::uint64_t max_value_bytes = std::uint64_t{512} << 20;

  bool tls = false;
  std::string tls_ca;    // PEM; empty: what the system trusts
  std::string tls_cert;  // PEM; a client certificate, where the server asks for one
  std::string tls_key;   // PEM; empty: stands in tls_cert
  std::string tls_name;  // expected in the server's certificate; empty: the host
  bool tls_verify = true;

  bool strict = false;
};

// Throws Error{invalid_argument}.
std::unique_ptr<EmbeddingStore> make_redis_store(const RedisStoreOptions& options);

}  // namespace vitrove
