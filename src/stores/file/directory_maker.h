// Makes the directories of a store, with the permissions of its root.
#pragma once

#include <atomic>
#include <string>

#include <sys/types.h>

#include "stores/file/layout.h"

namespace vitrove::file {

class DirectoryMaker {
 public:
  explicit DirectoryMaker(const Layout& layout) : layout_(layout) {}

  // Makes a directory of the fan-out and what is missing above it, the root included. 0 or errno.
  int make(const std::string& directory);

  // For new files: the root's permissions without the x bits.
  mode_t file_mode() const { return directory_mode_.load() & 0666; }

 private:
  int make_root();
  int make_below(const std::string& directory);

  const Layout& layout_;
  std::atomic<mode_t> directory_mode_{0700};
};

}  // namespace vitrove::file
