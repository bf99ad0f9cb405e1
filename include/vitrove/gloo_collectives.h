// Collectives over Gloo's TCP transport, for ranks that have no process group of their own.
//
// In a library of its own (vitrove_gloo), built where Gloo was found (Debian: libgloo-dev), so
// that nobody who does without it needs it.
//
// The ranks find each other by files in a directory that all of them see. It must be empty when the
// first rank starts: addresses of an earlier group lead nowhere. One directory may serve several
// groups of different names.
//
// Every rank holds a connection to every other, so the end of one process is noticed at once. The
// connections are neither encrypted nor authenticated: keep them on a network of the ranks' own.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "vitrove/collectives.h"

namespace vitrove {

struct GlooOptions {
  int rank = 0;
  int size = 1;
  std::filesystem::path directory;    // exists
  std::string group = "vitrove";      // not empty
  std::string address = "127.0.0.1";  // of this host, as the other ranks reach it
  std::chrono::milliseconds connect_timeout{30'000};
};

// Blocks until all ranks are there. Throws Error{invalid_argument}, or Error{unavailable} when they
// are not in time.
std::unique_ptr<Collectives> make_gloo_collectives(const GlooOptions& options);

}  // namespace vitrove
