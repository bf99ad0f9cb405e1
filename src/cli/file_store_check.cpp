#include "cli/file_store_check.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/environment.h"
#include "vitrove/file_store.h"
#include "vitrove/units.h"

namespace vitrove::cli {
namespace {

namespace fs = std::filesystem;
using Kind = Remark::Kind;

// The directory itself, or the nearest above it that is there.
fs::path nearest_there(fs::path path) {
  std::error_code failed;
  while (path.has_relative_path() && !fs::exists(path, failed)) path = path.parent_path();
  return path;
}

// Makes a directory with a file in it, and takes both away again. 0 or errno.
int try_to_write(const fs::path& where) {
  std::string folder = (where / ".vitrove-doctor-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return errno;
  std::string file = folder + "/file-XXXXXX";
  const int fd = ::mkstemp(file.data());
  int error = fd < 0 ? errno : 0;
  if (fd >= 0) {
    const std::array<char, 4096> block{};
    if (::write(fd, block.data(), block.size()) != std::ssize(block)) error = errno;
    ::close(fd);
    ::unlink(file.c_str());
  }
  ::rmdir(folder.c_str());
  return error;
}

std::optional<std::string> kind_of_file_system(const fs::path& path) {
  struct Known {
    std::uint32_t magic;
    const char* words;
  };
  constexpr std::array known = {
      Known{0x01021994, "it is on a tmpfs: values there take memory, and are gone after a restart"},
      Known{0x858458f6, "it is on a ramfs: values there take memory, and are gone after a restart"},
      Known{0x794c7630, "it is on an overlay, as containers have: it may go with the container"},
      Known{0x6969, "it is on NFS: clocks of the hosts should agree to a minute"}};
  struct statfs status;
  if (::statfs(path.c_str(), &status) != 0) return std::nullopt;
  for (const Known& each : known)
    if (static_cast<std::uint32_t>(status.f_type) == each.magic) return each.words;
  return std::nullopt;
}

std::optional<std::uint64_t> free_bytes(const fs::path& path) {
  struct statvfs status;
  if (::statvfs(path.c_str(), &status) != 0) return std::nullopt;
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

}  // namespace

Remarks remarks_on_new_place(const fs::path& root, bool is_default) {
  std::error_code failed;
  const fs::path there = nearest_there(root);
  const bool is_missing = there != root;
  if (!fs::is_directory(there, failed))
    return {{Kind::bad, there.string() + " is a file, and no directory"}};
  const int error = try_to_write(there);
  if (error != 0) {
    const std::string why = errno_text(error);
    return {{Kind::bad, is_missing ? "the directory does not exist, and cannot be made in " +
                                         there.string() + ": " + why
                                   : "the directory cannot be written to: " + why}};
  }
  if (is_missing) {
    return {{is_default ? Kind::note : Kind::warning,
             "the directory does not exist; a server would make it in " + there.string() +
                 ", which can be written to" + (is_default ? "" : ": is the path right?")}};
  }
  if (fs::is_empty(root, failed))
    return {{Kind::note,
             "the directory is empty and can be written to: a server would begin a "
             "store there"}};
  return {{Kind::warning,
           "the directory holds other things and no store; a server would begin one "
           "beside them: is the path right?"}};
}

Remarks remarks_on_capacity(const StoreUrl& url, const StoreHealth& health) {
  StoreOptions options(url.options);
  const std::uint64_t capacity = options.bytes("capacity", FileStoreOptions{}.capacity);
  const std::string text = "capacity of " + format_bytes(capacity);
  const fs::path there = nearest_there(url.path);
  Remarks remarks;
  const std::uint64_t used = health.bytes.value_or(0);
  const auto unused = free_bytes(there);
  if (unused && capacity > *unused + used) {
    remarks.push_back({Kind::warning, "the " + text + " is above what the file system has free (" +
                                          format_bytes(*unused) +
                                          "): the disk will be full before the store is; set "
                                          "capacity= in the URL"});
  }
  if (used > capacity) {
    remarks.push_back({Kind::warning, "a server with this " + text +
                                          " would evict what the store holds beyond that"});
  }
  if (health.capacity && *health.capacity != capacity) {
    remarks.push_back({Kind::note, "servers that run keep to " + format_bytes(*health.capacity) +
                                       ", this URL says " + format_bytes(capacity) +
                                       ": the smallest wins"});
  }
  if (auto kind = kind_of_file_system(there)) remarks.push_back({Kind::note, *std::move(kind)});
  return remarks;
}

}  // namespace vitrove::cli
