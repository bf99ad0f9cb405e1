// Looks at a directory while others write to it and remove from it: what vanishes meanwhile is no
// error, and ends no walk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/stat.h>

namespace vitrove::testing {

// Everything below `directory`, each directory before what is in it.
inline std::vector<std::filesystem::path> paths_below(const std::filesystem::path& directory) {
  namespace fs = std::filesystem;
  std::vector<fs::path> all;
  std::vector<fs::path> directories = {directory};
  while (!directories.empty()) {
    const fs::path next = std::move(directories.back());
    directories.pop_back();
    std::error_code vanished;
    for (fs::directory_iterator at(next, vanished), end; !vanished && at != end;
         at.increment(vanished)) {
      all.push_back(at->path());
      std::error_code unknown;
      if (fs::is_directory(at->symlink_status(unknown))) directories.push_back(at->path());
    }
  }
  return all;
}

inline std::size_t count_files_named(const std::filesystem::path& directory,
                                     std::string_view prefix) {
  std::size_t count = 0;
  for (const auto& path : paths_below(directory)) {
    if (path.filename().string().starts_with(prefix)) ++count;
  }
  return count;
}

// What `du` says; while others are at work, never more than there really was at one moment. For
// whatever is counted was there from its listing until its stat, and so when the listing ended.
inline std::uint64_t disk_use(const std::filesystem::path& directory) {
  std::uint64_t bytes = 0;
  std::set<std::pair<dev_t, ino_t>> seen;  // a file that is renamed meanwhile is listed twice
  for (const auto& path : paths_below(directory)) {
    struct stat status;
    if (::lstat(path.c_str(), &status) != 0) continue;
    if (!seen.emplace(status.st_dev, status.st_ino).second) continue;
    bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  return bytes;
}

}  // namespace vitrove::testing
