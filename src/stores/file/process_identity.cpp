#include "stores/file/process_identity.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <random>

#include <unistd.h>

#include "vitrove/digest.h"

namespace vitrove::file {
namespace {

std::string random_digits() {
  std::random_device random;
  std::array<std::byte, 8> bytes;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return to_hex(bytes);
}

// A pid is only comparable within one boot of one kernel and one pid namespace: containers that
// share a directory often all have the same pid and host name. Where /proc does not tell, a random
// host is one that no other writer believes to be on.
std::string host_identity() {
  std::string text;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
  std::array<char, 64> link{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", link.data(), link.size());
  if (text.empty() || length <= 0) return random_digits();
  text.append(link.data(), static_cast<std::size_t>(length));
  return to_hex(sha256(text)).substr(0, 16);
}

}  // namespace

ProcessIdentity make_identity() { return {random_digits(), host_identity(), ::getpid()}; }

bool is_certainly_dead(const ProcessIdentity& other, const ProcessIdentity& self) {
  if (other.host != self.host || other.pid <= 0) return false;
  return ::kill(static_cast<pid_t>(other.pid), 0) != 0 && errno == ESRCH;
}

}  // namespace vitrove::file
