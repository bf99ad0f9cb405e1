// Visits everything below the fan-out of a file store.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <sys/stat.h>

#include "stores/file/layout.h"

namespace vitrove::file {

// What a walk shows. Names are valid during the call only.
struct WalkEntry {
  int directory_fd = -1;  // of the directory that holds it
  std::string_view first;
  std::string_view second;
  std::string_view name;
};

struct WalkVisitor {
  // A directory of the fan-out (or its root), before what is in it. False ends the walk.
  std::function<bool(const struct stat&)> on_directory = [](const struct stat&) { return true; };
  // Everything that stands in a directory of the second level. False ends the walk.
  std::function<bool(const WalkEntry&)> on_entry;
};

// Answers 0, or errno when something could not be read that should have been: then what was shown
// is not all. A directory that is none, that vanished, or that we may not read is passed over.
int walk(const Layout& layout, const WalkVisitor& visitor);

// What a file or a directory counts against the capacity, see file_store.h.
std::uint64_t disk_bytes(const struct stat& status);

// What the file system has allocated for it so far.
std::uint64_t allocated_bytes(const struct stat& status);

}  // namespace vitrove::file
