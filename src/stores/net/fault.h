// Why something did not work, in the words of the store contract and of an operator.
#pragma once

#include <string>

#include "vitrove/embedding_store.h"

namespace vitrove::net {

struct Fault {
  StoreStatus status = StoreStatus::ok;
  int error_number = 0;
  std::string detail;  // for health() and the log; holds no secret

  explicit operator bool() const { return status != StoreStatus::ok; }
  StoreResult result() const { return {status, 0, error_number}; }
};

}  // namespace vitrove::net
