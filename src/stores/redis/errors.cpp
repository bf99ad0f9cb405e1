#include "stores/redis/errors.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

namespace vitrove::redis {
namespace {

struct Meaning {
  std::string_view code;
  StoreStatus status;
  int error_number;
};

constexpr std::array meanings = {
    Meaning{"OOM", StoreStatus::no_space, ENOMEM},      // maxmemory, and nothing to evict
    Meaning{"MISCONF", StoreStatus::no_space, ENOSPC},  // cannot write its snapshot
    Meaning{"READONLY", StoreStatus::denied, EROFS},    // a replica
    Meaning{"NOREPLICAS", StoreStatus::denied, EROFS},  // too few replicas to take writes
    Meaning{"NOAUTH", StoreStatus::denied, EACCES},
    Meaning{"WRONGPASS", StoreStatus::denied, EACCES},
    Meaning{"NOPERM", StoreStatus::denied, EPERM},
    Meaning{"WRONGTYPE", StoreStatus::io_error, EMEDIUMTYPE},  // no string: somebody else's
    Meaning{"LOADING", StoreStatus::unavailable, EAGAIN},
    Meaning{"BUSY", StoreStatus::unavailable, EBUSY},  // in a script
    Meaning{"MASTERDOWN", StoreStatus::unavailable, EHOSTDOWN},
    Meaning{"CLUSTERDOWN", StoreStatus::unavailable, EHOSTDOWN},
    Meaning{"TRYAGAIN", StoreStatus::unavailable, EAGAIN},
    Meaning{"MOVED", StoreStatus::unavailable, EREMOTE},
    Meaning{"ASK", StoreStatus::unavailable, EREMOTE},
};

std::string printable(std::string_view text) {
  constexpr std::size_t most = 200;
  std::string shown(text.substr(0, most));
  std::ranges::replace_if(
      shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  return shown;
}

}  // namespace

Fault fault_of(const Reply& error) {
  const std::string_view code = error.error_code();
  const auto found = std::ranges::find(meanings, code, &Meaning::code);
  if (found != meanings.end()) return {found->status, found->error_number, printable(error.text)};
  if (error.text.find("max number of clients") != std::string::npos) {
    return {StoreStatus::unavailable, EUSERS, printable(error.text)};
  }
  if (error.text.find("invalid bulk length") != std::string::npos) {
    return {StoreStatus::too_large, EMSGSIZE, printable(error.text)};
  }
  return {StoreStatus::io_error, EPROTO, printable(error.text)};
}

bool refuses_command(const Reply& reply) {
  if (!reply.is_error()) return false;
  const int error = fault_of(reply).error_number;
  return error == EPERM || error == EPROTO;
}

Fault odd_answer() { return {StoreStatus::io_error, EPROTO, "an answer of another kind"}; }

StoreResult result_of_error(const Reply& reply) {
  return reply.is_error() ? fault_of(reply).result() : odd_answer().result();
}

std::optional<Redirect> redirect_of(const Reply& error) {
  const std::string_view code = error.error_code();
  if (code != "MOVED" && code != "ASK") return std::nullopt;
  const std::string_view text = error.text;
  const std::size_t place = text.rfind(' ');
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || place == text.npos || colon < place) return std::nullopt;
  Redirect redirect;
  redirect.is_ask = code == "ASK";
  redirect.host = text.substr(place + 1, colon - place - 1);
  const char* const end = text.data() + text.size();
  const auto [stop, error_code] = std::from_chars(text.data() + colon + 1, end, redirect.port);
  const bool is_port =
      error_code == std::errc{} && stop == end && redirect.port > 0 && redirect.port <= 65535;
  if (!is_port) return std::nullopt;
  return redirect;
}

}  // namespace vitrove::redis
