// file: URLs, below one directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "vitrove/fetch.h"

namespace vitrove {

// Opens files below a directory and never anything else, whatever happens to the tree meanwhile:
// the kernel resolves the path beneath the directory's descriptor (openat2), or, where it cannot,
// we walk component by component and follow no symbolic link at all.
class LocalFiles {
 public:
  // No directory: every URL is refused. Throws Error{invalid_argument} when `root` is none.
  explicit LocalFiles(const std::filesystem::path& root);

  // `url` starts with "file:" in any case. Throws Error{forbidden} when switched off,
  // Error{invalid_argument} for a malformed URL, Error{not_found} with one and the same message for
  // files that are missing, outside, unreadable or not regular, Error{too_large}; and what `wanted`
  // throws.
  std::vector<std::byte> read(std::string_view url, std::uint64_t max_bytes,
                              const BytesWanted& wanted = {}) const;

 private:
  std::optional<std::string> path_below_root(std::string_view path) const;

  std::filesystem::path spelled_root_;  // as configured
  std::filesystem::path real_root_;     // without symbolic links
  UniqueFd directory_;
};

// Both ways to open `path` beneath a directory; an empty descriptor and errno on failure.
UniqueFd open_beneath(int directory, const std::string& path);
UniqueFd open_beneath_by_walking(int directory, const std::string& path);

}  // namespace vitrove
