// What the errors of a server mean in the words of the store contract.
#pragma once

#include <optional>
#include <string>

#include "stores/redis/network.h"
#include "stores/redis/resp.h"

namespace vitrove::redis {

// Of an error reply to an ordinary command. The detail is the server's text, printable and short.
Fault fault_of(const Reply& error);

// Whether it says that this user may not use the command, or that the server, or a proxy before it,
// does not know it: proxies have many words for that, so that any error without a meaning of its
// own counts.
bool refuses_command(const Reply& reply);

// Of an answer that the command cannot have.
Fault odd_answer();

// Of any answer that is not the one hoped for.
StoreResult result_of_error(const Reply& reply);

// MOVED or ASK: the slot has to be asked for elsewhere.
struct Redirect {
  bool is_ask = false;
  std::string host;  // empty: that of the server which says so
  int port = 0;
};
std::optional<Redirect> redirect_of(const Reply& error);

}  // namespace vitrove::redis
