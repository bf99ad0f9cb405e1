// Makes the directories of a store, with the permissions of its root.
#pragma once

#include <atomic>
#include <string>

#include <sys/types.h>

#include "stores/file/layout.h"

namespace vitrove::file {

class DirectoryMaker {
 public:
  enum class Role : std::uint8_t { writer, guest };
  explicit DirectoryMaker(const Layout& layout, Role role = Role::writer)
      : layout_(layout), role_(role) {
    if (role == Role::guest) look_at_root();  // writers do when they begin
  }

  // Makes a directory of the fan-out and what is missing above it, the root included; a guest only
  // what is missing in a store that is there. 0 or errno.
  int make(const std::string& directory);

  // For new files: the root's permissions without the x bits.
  mode_t file_mode() const { return directory_mode_.load() & 0666; }

 private:
  int make_root();
  int look_at_root();
  int make_below(const std::string& directory);

  const Layout& layout_;
  const Role role_;
  std::atomic<mode_t> directory_mode_{0700};
};

}  // namespace vitrove::file
