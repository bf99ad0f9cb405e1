#include "stores/file/temporary_file.h"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vitrove::file {
namespace {

int rename_over(const std::string& from, const std::string& to) {
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

int rename_to_new(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // NFS and some others know no such rename; a hard link fails alike when there is something.
  if (::link(from.c_str(), to.c_str()) == 0) {
    ::unlink(from.c_str());
    return 0;
  }
  if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK) return errno;
  // Nor hard links. Values of one key are equal, so overwriting one by accident does no harm.
  struct stat status;
  return ::lstat(to.c_str(), &status) == 0 ? EEXIST : rename_over(from, to);
}

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

int TemporaryFile::publish(const std::string& target, PutMode mode) {
  const int error =
      mode == PutMode::replace ? rename_over(path_, target) : rename_to_new(path_, target);
  if (error == 0) path_.clear();
  return error;
}

std::pair<TemporaryFile, int> TemporaryFiles::make(const EmbeddingKey& key) {
  // The directories may be missing, and others may remove them again while they are empty.
  constexpr int attempts = 100;
  int error = 0;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    std::string path = name_for(key);
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (fd) {
      const mode_t mode = maker_.file_mode();
      if ((mode & 077) != 0) static_cast<void>(::fchmod(fd.get(), mode) == 0);
      return {TemporaryFile(std::move(path), std::move(fd)), 0};
    }
    error = errno;
    if (error == ENOENT) error = maker_.make(layout_.directory_of(key));
    if (error != 0 && error != ENOENT) break;
  }
  return {TemporaryFile({}, UniqueFd()), error == 0 ? ENOENT : error};
}

}  // namespace vitrove::file
