// The Mooncake store: values in the memory of a Mooncake cluster.
//
//   mooncake://MASTER:50051?protocol=tcp&metadata=P2PHANDSHAKE&segment=0&…
//   mooncake                     everything from the JSON file named by MOONCAKE_CONFIG_PATH
//
//   protocol=tcp          tcp, rdma, …, as Mooncake spells them
//   device=               RDMA device
//   metadata=P2PHANDSHAKE metadata server
//   hostname=             this host as other nodes reach it; by default the address from which the
//                         master is reached
//   segment=0             memory that this process lends to the cluster
//   local_buffer=16MiB    Mooncake's own buffer
//   replicas=1  soft_pin=false  hard_pin=false   of what is put
//   tenant=               Mooncake's tenant
//   prefix=               put before every key
//   python=python3        the interpreter that has the wheel; by default VITROVE_MOONCAKE_PYTHON,
//                         else python3 on PATH
//   library=              libmooncake_store.so; by default VITROVE_MOONCAKE_LIBRARY
//   staging=256MiB        for values outside the pool, and the largest value
//   threads=8             calls that the helper makes at once
//   rpc_timeout=2s        Mooncake's own time limits (MC_RPC_TIMEOUT_MS, …)
//   connect_timeout=1s
//   start_timeout=30s     for loading Mooncake and for its set-up
//   hang_timeout=10s      how long after its deadline an unanswered call proves a helper hung
//   strict=false          wait for the master, and refuse to start without
//
// The file's keys are local_hostname, metadata_server, global_segment_size, local_buffer_size,
// protocol, device_name, master_server_address and tenant_id, as SGLang and Mooncake have them;
// others are left alone. It is read when the URL names no master; options of the URL go before it.
//
// Mooncake's client never runs in this process: it aborts, hangs and blocks signals when it
// pleases. It runs in a helper process, either the Python wheel (on the pool's own memory, no byte
// is copied) or, where `library` says so, a libmooncake_store.so (which takes one buffer a value,
// so that values pass through staging memory, one copy). A helper that ends or hangs is a miss and
// is started again. health().detail names the provider, and says why it does not work.
//
// A get whose holder has gone is `io_error` until the master has noticed (about ten seconds), then
// `absent`; so is a key whose lease ran out twice during the transfer. Removal is forced: a value
// is gone though somebody may be reading it, and such a reader's checksum fails. Values cannot be
// replaced, listed or claimed.
//
// Mooncake's ports listen on all interfaces without authentication: keep them inside the cluster.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "vitrove/embedding_store.h"

namespace vitrove {

struct MooncakeStoreOptions {
  std::string master;  // HOST:PORT, or what Mooncake takes instead
  std::string protocol = "tcp";
  std::string device;
  std::string metadata = "P2PHANDSHAKE";
  std::string hostname;
  std::uint64_t segment_bytes = 0;
  std::uint64_t local_buffer_bytes = std::uint64_t{16} << 20;
  std::uint32_t replicas = 1;
  bool soft_pin = false;
  bool hard_pin = false;
  std::string tenant;
  std::string prefix;
  std::string python;   // a path, or a name on PATH
  std::string library;  // when set, it is used, and Python is not
  std::string helper;   // the program that loads the library; empty: looked for
  std::uint64_t staging_bytes = std::uint64_t{256} << 20;
  std::uint32_t threads = 8;
  std::chrono::milliseconds rpc_timeout{2000};
  std::chrono::milliseconds connect_timeout{1000};
  std::chrono::milliseconds start_timeout{30'000};
  std::chrono::milliseconds hang_timeout{10'000};
  bool strict = false;
};

// Throws Error{invalid_argument}; with `strict`, when no master is there in time.
std::unique_ptr<EmbeddingStore> make_mooncake_store(const MooncakeStoreOptions& options);

}  // namespace vitrove
