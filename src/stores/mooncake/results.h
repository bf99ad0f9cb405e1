// What Mooncake's codes mean for a store: the one place that knows them.
#pragma once

#include <cstdint>

#include "stores/mooncake/wire.h"
#include "vitrove/embedding_store.h"

namespace vitrove::mooncake {

enum Code : std::int64_t {
  no_space = -200,
  version_mismatch = -300,
  bad_parameters = -600,
  not_ready = -703,  // somebody is still writing it
  missing = -704,
  exists_already = -705,
  leased = -706,
  lease_expired = -707,
  replica_gone = -712,
  transfer_failed = -800,
  rpc_failed = -900,
  rpc_timed_out = -901,
};

// ESTALE tells a lease that ran out during the transfer from a plain miss.
StoreResult get_result(const wire::Answer& answer, std::uint64_t wanted_bytes);
StoreResult put_result(const wire::Answer& answer, std::uint64_t bytes);
StoreResult exist_result(const wire::Answer& answer);
StoreResult remove_result(const wire::Answer& answer);

}  // namespace vitrove::mooncake
