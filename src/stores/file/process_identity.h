// Who is who among the writers of a directory.
#pragma once

#include <cstdint>
#include <string>

namespace vitrove::file {

struct ProcessIdentity {
  std::string token;  // 16 random hex digits: one store object
  std::string host;   // 16 hex digits: where the pid means something
  std::int64_t pid = 0;

  bool operator==(const ProcessIdentity&) const = default;
};

// A new token for this process.
ProcessIdentity make_identity();

// True only when it is certain: the process was on this host, in this pid namespace, and is gone.
bool is_certainly_dead(const ProcessIdentity& other, const ProcessIdentity& self);

}  // namespace vitrove::file
