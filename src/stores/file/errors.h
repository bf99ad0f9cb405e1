// What errno means in the words of the store contract.
#pragma once

#include <cerrno>

#include "vitrove/embedding_store.h"

namespace vitrove::file {

inline StoreStatus status_of(int error_number) {
  switch (error_number) {
    case 0:
      return StoreStatus::ok;
    case ENOENT:
    case ESTALE:  // NFS: removed while we had it open
      return StoreStatus::absent;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
      return StoreStatus::no_space;
    case EACCES:
    case EPERM:
    case EROFS:
      return StoreStatus::denied;
    case EFBIG:
      return StoreStatus::too_large;
    case ETIMEDOUT:
      return StoreStatus::timeout;
    case ECANCELED:
      return StoreStatus::cancelled;
    default:
      return StoreStatus::io_error;
  }
}

inline StoreResult failure(int error_number, std::uint64_t size = 0) {
  return {status_of(error_number), size, error_number};
}

// The same for a put, to which "no such file" is a fault and not an answer.
inline StoreResult put_failure(int error_number) {
  StoreResult result = failure(error_number);
  if (result.status == StoreStatus::absent) result.status = StoreStatus::io_error;
  return result;
}

}  // namespace vitrove::file
