#include "stores/file/walk.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace vitrove::file {
namespace {

class Directory {
 public:
  // `parent` may be AT_FDCWD.
  Directory(int parent, const char* name, int flags) {
    const int fd = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
    if (fd >= 0) stream_ = ::fdopendir(fd);
    if (stream_ != nullptr) return;
    error_ = errno;
    if (fd >= 0) ::close(fd);
  }
  ~Directory() {
    if (stream_ != nullptr) ::closedir(stream_);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  explicit operator bool() const { return stream_ != nullptr; }
  int fd() const { return ::dirfd(stream_); }
  int error() const { return error_; }

  // nullptr at the end, or when reading fails.
  const char* next() {
    errno = 0;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): unsafe on a shared stream only, and this is ours
    const dirent* const entry = ::readdir(stream_);
    if (entry != nullptr) return entry->d_name;
    error_ = errno;
    return nullptr;
  }

 private:
  DIR* stream_ = nullptr;
  int error_ = 0;
};

class Walk {
 public:
  Walk(const Layout& layout, const WalkVisitor& visitor) : layout_(layout), visitor_(visitor) {}

  int run() {
    Directory root(AT_FDCWD, layout_.base().c_str(), 0);
    if (!root) return root.error();
    if (!enter(root)) return 0;
    for (const std::string& first : fan_out_names(root)) {
      if (!walk_first(root.fd(), first)) break;
    }
    return error_;
  }

 private:
  // Each of these is false when the walk is over.

  bool walk_first(int parent, const std::string& first) {
    Directory directory(parent, first.c_str(), O_NOFOLLOW);  // what a link leads to is not ours
    if (!directory) return pass_over(directory.error());
    if (!enter(directory)) return false;
    return std::ranges::all_of(fan_out_names(directory), [&](const std::string& second) {
      return walk_second(directory.fd(), first, second);
    });
  }

  bool walk_second(int parent, std::string_view first, const std::string& second) {
    Directory directory(parent, second.c_str(), O_NOFOLLOW);
    if (!directory) return pass_over(directory.error());
    if (!enter(directory)) return false;
    while (const char* const name = directory.next()) {
      const std::string_view text(name);
      if (text == "." || text == "..") continue;
      if (!visitor_.on_entry({directory.fd(), first, second, text})) return false;
    }
    return note(directory.error());
  }

  bool enter(const Directory& directory) {
    struct stat status;
    return ::fstat(directory.fd(), &status) != 0 || visitor_.on_directory(status);
  }

  // In order, so that two walks see things alike.
  std::vector<std::string> fan_out_names(Directory& directory) {
    std::vector<std::string> names;
    while (const char* const name = directory.next()) {
      if (is_fan_out_name(name)) names.emplace_back(name);
    }
    note(directory.error());
    std::ranges::sort(names);
    return names;
  }

  bool pass_over(int error) {
    const bool harmless = error == ENOTDIR || error == ELOOP || error == EACCES;
    return harmless || note(error);
  }

  // Others remove directories while we read them; what has vanished is no fault.
  bool note(int error) {
    const bool harmless = error == 0 || error == ENOENT || error == ESTALE;
    if (!harmless) error_ = error;
    return harmless;
  }

  const Layout& layout_;
  const WalkVisitor& visitor_;
  int error_ = 0;
};

}  // namespace

int walk(const Layout& layout, const WalkVisitor& visitor) { return Walk(layout, visitor).run(); }

std::uint64_t disk_bytes(const struct stat& status) {
  constexpr std::uint64_t block = 4096;
  const auto size = static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0));
  const std::uint64_t rounded = (size + block - 1) / block * block;
  return std::max(rounded, allocated_bytes(status));
}

std::uint64_t allocated_bytes(const struct stat& status) {
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

}  // namespace vitrove::file
