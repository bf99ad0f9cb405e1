#include "stores/mooncake/results.h"

#include <cerrno>

namespace vitrove::mooncake {
namespace {

StoreStatus status_of(std::int64_t code) {
  switch (code) {
    case not_ready:
    case missing:
    case lease_expired:
    case replica_gone:
      return StoreStatus::absent;
    case no_space:
      return StoreStatus::no_space;
    case leased:
      return StoreStatus::conflict;
    case version_mismatch:
    case rpc_failed:
      return StoreStatus::unavailable;
    case rpc_timed_out:
      return StoreStatus::timeout;
    default:
      return StoreStatus::io_error;
  }
}

}  // namespace

StoreResult get_result(const wire::Answer& answer, std::uint64_t wanted_bytes) {
  const auto got = static_cast<std::uint64_t>(answer.code);
  if (answer.code > 0 && got == wanted_bytes) return {StoreStatus::ok, got};
  if (answer.code > 0) return {StoreStatus::size_mismatch, got};
  // Mooncake calls buffers that do not fit bad parameters, or a failed transfer.
  if (answer.code < 0 && answer.size != 0 && answer.size != wanted_bytes) {
    return {StoreStatus::size_mismatch, answer.size};
  }
  if (answer.code == 0) return {StoreStatus::io_error};  // success, yet not one byte
  const int error = answer.code == lease_expired ? ESTALE : 0;
  return {status_of(answer.code), answer.size, error};
}

StoreResult put_result(const wire::Answer& answer, std::uint64_t bytes) {
  if (answer.code == 0 || answer.code == exists_already) return {StoreStatus::ok, bytes};
  const StoreStatus status = status_of(answer.code);
  // A put knows no absence: a replica that is not ready or gone is a failure of this put.
  return {status == StoreStatus::absent ? StoreStatus::io_error : status};
}

StoreResult exist_result(const wire::Answer& answer) {
  if (answer.code > 0 && answer.size > 0) return {StoreStatus::ok, answer.size};
  if (answer.code >= 0) return {StoreStatus::absent};  // gone before its size could be asked for
  return {status_of(answer.code)};
}

StoreResult remove_result(const wire::Answer& answer) {
  if (answer.code >= 0) return {StoreStatus::ok};
  return {status_of(answer.code)};
}

}  // namespace vitrove::mooncake
