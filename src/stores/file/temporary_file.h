// Files under a temporary name beside the place they are meant for.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "stores/file/directory_maker.h"
#include "stores/file/layout.h"
#include "vitrove/embedding_store.h"

namespace vitrove::file {

// A file under a temporary name, which is gone unless it was given another name.
class TemporaryFile {
 public:
  TemporaryFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  TemporaryFile(TemporaryFile&& other) noexcept
      : path_(std::exchange(other.path_, {})), fd_(std::move(other.fd_)) {}
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile();

  int fd() const { return fd_.get(); }

  // 0 or errno; EEXIST when something stands there that `mode` leaves alone.
  int publish(const std::string& target, PutMode mode);

 private:
  std::string path_;
  UniqueFd fd_;
};

// Makes them, and the directories for them, with the permissions of the root. Thread-safe.
class TemporaryFiles {
 public:
  // All outlive this.
  TemporaryFiles(const Layout& layout, DirectoryMaker& maker, const ProcessIdentity& writer)
      : layout_(layout), maker_(maker), writer_(writer) {}

  // A name that nobody has used yet.
  std::string name_for(const EmbeddingKey& key) {
    return layout_.temporary_path(key, writer_, number_.fetch_add(1));
  }
  // The directory of a key, for a file that lies in another one. 0 or errno.
  int make_directory(const EmbeddingKey& key) { return maker_.make(layout_.directory_of(key)); }
  // The file, and 0 or errno.
  std::pair<TemporaryFile, int> make(const EmbeddingKey& key);

 private:
  const Layout& layout_;
  DirectoryMaker& maker_;
  const ProcessIdentity& writer_;
  std::atomic<std::uint64_t> number_{0};
};

// rename() that fails with EEXIST when something has the name already, as well as the file system
// can. 0 or errno.
int rename_to_new(const std::string& from, const std::string& to);

}  // namespace vitrove::file
