// vitrove-mooncake-helper LIBRARY PARENT THREADS: a libmooncake_store.so at the end of a socket.
//
// Started by the Mooncake store, never by people. Descriptor 3 is the socket; what the library
// writes to standard error ends up in Vitrove's log.

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "mooncake_helper/frame_socket.h"
#include "mooncake_helper/library_helper.h"

namespace vitrove::mooncake {
namespace {

constexpr int socket_fd = 3;

// A helper that hangs does not notice that Vitrove is gone; the kernel does.
void die_with(long parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
}

void tell_started(FrameSocket& socket, bool ok, const std::string& detail,
                  const std::string& provider) {
  const std::string text = nlohmann::json{
      {"ok", ok},
      {"detail", detail},
      {"provider", provider},
      {"many_runs", false}}.dump();
  const auto bytes = std::as_bytes(std::span(text));
  socket.write(wire::Type::started, 0, {bytes.begin(), bytes.end()});
}

// The first thread that hears the end of the socket ends the process: the others may be anywhere.
[[noreturn]] void work(LibraryHelper& helper) {
  try {
    helper.serve();
    helper.leave();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    ::_exit(2);
  }
  ::_exit(0);
}

int run(const std::string& path, long threads) {
  FrameSocket socket(socket_fd);
  try {
    const MooncakeLibrary library(path);
    LibraryHelper helper(socket, library);
    tell_started(socket, true, {}, "the library " + path);
    std::vector<std::jthread> workers;
    for (long i = 0; i < threads; ++i) workers.emplace_back([&helper] { work(helper); });
    workers.clear();
  } catch (const std::exception& error) {
    tell_started(socket, false, error.what(), {});
  }
  return 1;
}

}  // namespace
}  // namespace vitrove::mooncake

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "%s is started by Vitrove's Mooncake store\n", argv[0]);
    return 2;
  }
  vitrove::mooncake::die_with(std::strtol(argv[2], nullptr, 10));
  return vitrove::mooncake::run(argv[1], std::strtol(argv[3], nullptr, 10));
}
