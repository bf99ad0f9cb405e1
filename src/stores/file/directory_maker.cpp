#include "stores/file/directory_maker.h"

#include <cerrno>
#include <filesystem>

#include <sys/stat.h>

namespace vitrove::file {

int DirectoryMaker::make(const std::string& directory) {
  if (const int error = make_root()) return error;
  return make_below(directory);
}

int DirectoryMaker::make_root() {
  const std::string& root = layout_.root();
  if (role_ == Role::guest) return look_at_root();
  if (::mkdir(root.c_str(), 0700) != 0 && errno == ENOENT) {
    std::error_code failed;  // told by the second attempt
    std::filesystem::create_directories(std::filesystem::path(root).parent_path(), failed);
    ::mkdir(root.c_str(), 0700);
  }
  return look_at_root();
}

int DirectoryMaker::look_at_root() {
  struct stat status;
  if (role_ == Role::guest && ::stat(layout_.base().c_str(), &status) != 0) return errno;
  if (::stat(layout_.root().c_str(), &status) != 0) return errno;
  if (!S_ISDIR(status.st_mode)) return ENOTDIR;
  directory_mode_ = status.st_mode & 02777;
  return 0;
}

int DirectoryMaker::make_below(const std::string& directory) {
  const mode_t mode = directory_mode_.load();
  if (::mkdir(directory.c_str(), mode & 0777) != 0) {
    if (errno == EEXIST) return 0;
    if (errno != ENOENT || directory == layout_.base()) return errno;
    const int error = make_below(directory.substr(0, directory.rfind('/')));
    if (error != 0) return error;
    if (::mkdir(directory.c_str(), mode & 0777) != 0) return errno == EEXIST ? 0 : errno;
  }
  // The umask has taken away what a shared root gives to its group; failing is not worth an error.
  if ((mode & 077) != 0) static_cast<void>(::chmod(directory.c_str(), mode) == 0);
  return 0;
}

}  // namespace vitrove::file
