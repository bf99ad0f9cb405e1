#include "cli/store_advice.h"

#include <algorithm>
#include <array>

namespace vitrove::cli {
namespace {

struct Advice {
  std::string_view store;
  std::string_view sign;  // of the trouble; the first that fits counts
  std::string_view words;
};

constexpr std::array known = {
    Advice{"redis", "login refused (WRONGPASS)", "user or password is wrong"},
    Advice{"redis", "login refused (ERR)", "the server has no password set: leave it out"},
    Advice{"redis", "NOAUTH", "the server wants a password: redis://:PASSWORD@HOST"},
    Advice{"redis", "NOPERM", "the user lacks rights: docs/stores.md lists the commands"},
    Advice{"redis", "Connection refused", "does the server run, and on this port?"},
    Advice{"redis", "cannot resolve", "the host's name is not known here"},
    Advice{"redis", "certificate refused",
           "name the authority that signed it with tls_ca=FILE, and the name in it with tls_name="},
    Advice{"redis", "TLS handshake", "it speaks no TLS: is it redis:// there?"},
    Advice{"redis", "the connection was lost", "it may speak TLS alone: is it rediss:// there?"},
    Advice{
        "redis", "the server is silent",
        "it accepts connections and says nothing: does it hang (stopped, swapping, a long script), "
        "or is it no Redis?"},
    Advice{"redis", "OOM",
           "it is full and evicts nothing: set a maxmemory-policy such as allkeys-lru"},
    Advice{"redis", "READONLY", "it is a replica: name the server that it follows"},
    Advice{"redis", "denied", "the user lacks rights: docs/stores.md lists the commands"},
    Advice{"mooncake", "no master answers", "does mooncake_master run, and on this port?"},
    Advice{"mooncake", "no_space",
           "no memory that is lent to the cluster has room: does a mooncake_client run? (segment= "
           "lends some from here)"},
    Advice{
        "mooncake", "timeout",
        "the master, or a mooncake_client that lends memory, does not answer: do they run, and are "
        "they not stopped?"},
    Advice{"mooncake", "cannot start", "python= names the interpreter that has the wheel"},
    Advice{"file", "Permission denied", "the folder must be writable for whoever runs Vitrove"},
    Advice{"file", "Read-only file system", "mount it writable, or name another folder"},
    Advice{"file", "No space left", "the disk is full: a lower capacity= leaves room for others"},
};

}  // namespace

std::string_view advice_for(std::string_view store, std::string_view trouble) {
  const auto* const found = std::ranges::find_if(known, [&](const Advice& advice) {
    return advice.store == store && trouble.find(advice.sign) != std::string_view::npos;
  });
  return found == known.end() ? std::string_view() : found->words;
}

}  // namespace vitrove::cli
