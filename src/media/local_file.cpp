#include "media/local_file.h"

#include <cerrno>
#include <cstring>
#include <ranges>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/environment.h"
#include "media/ascii.h"
#include "media/percent.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

// Non-blocking, so that nobody waits at a FIFO.
constexpr int read_flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

[[noreturn]] void fail_missing(const std::string& detail) {
  throw Error(ErrorCode::not_found, "the media file does not exist or is not allowed", detail);
}

[[noreturn]] void fail_malformed_path() {
  throw Error(ErrorCode::invalid_argument, "malformed file: URL (expected file:///path)");
}

// The path of "file:///path" or "file://localhost/path" (RFC 8089; also "file:/path").
std::string path_of(std::string_view url) {
  std::string_view rest = url.substr(std::string_view("file:").size());
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    const std::size_t slash = rest.find('/');
    if (slash == std::string_view::npos) fail_malformed_path();
    const std::string_view host = rest.substr(0, slash);
    if (!host.empty() && !equals_ignoring_case(host, "localhost")) {
      throw Error(ErrorCode::forbidden, "file: URLs of other hosts are not allowed");
    }
    rest.remove_prefix(slash);
  }
  if (!rest.starts_with('/') || rest.find_first_of("?#\\") != std::string_view::npos) {
    fail_malformed_path();
  }
  const auto path = percent_decode(rest);
  if (!path || path->find('\0') != std::string::npos) fail_malformed_path();
  return *path;
}

// "/a//b" and "/a/./b" are "/a/b"; ".." stays.
std::string tidy(std::string_view path) {
  std::string result;
  for (const auto part : path | std::views::split('/')) {
    const std::string_view name(part.begin(), part.end());
    if (name.empty() || name == ".") continue;
    result.append("/").append(name);
  }
  return result;
}

UniqueFd real_openat2(int directory, const std::string& path) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(read_flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return UniqueFd(
      static_cast<int>(::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how)));
}

std::vector<std::byte> read_regular(int fd, std::uint64_t max_bytes, const BytesWanted& wanted) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) fail_missing("not a regular file");
  const auto fail_size = [&] {
    throw Error(ErrorCode::too_large,
                "the item exceeds the limit of " + std::to_string(max_bytes) + " bytes");
  };
  if (static_cast<std::uint64_t>(status.st_size) > max_bytes) fail_size();
  const auto ask_for = [&wanted](std::uint64_t size) {
    if (wanted) wanted(size);
  };
  // One byte more than it should have tells the end, and whether it grew.
  const auto first = static_cast<std::size_t>(status.st_size) + 1;
  ask_for(first);
  std::vector<std::byte> bytes(first);
  std::size_t size = 0;
  for (;;) {
    if (size == bytes.size()) {
      ask_for(2 * size);
      bytes.resize(2 * size);
    }
    const ssize_t count = ::read(fd, bytes.data() + size, bytes.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_missing(errno_text(errno));
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
    if (size > max_bytes) fail_size();
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

UniqueFd open_beneath_by_walking(int directory, const std::string& path) {
  UniqueFd current;
  int at = directory;
  std::string_view rest = path;
  for (;;) {
    const std::size_t slash = rest.find('/');
    const bool is_last = slash == std::string_view::npos;
    const std::string name(rest.substr(0, slash));
    if (name.empty() || name == "..") {
      errno = EXDEV;
      return UniqueFd();
    }
    const int flags = is_last ? read_flags : O_PATH | O_DIRECTORY | O_CLOEXEC;
    UniqueFd next(::openat(at, name.c_str(), flags | O_NOFOLLOW));
    if (!next || is_last) return next;
    current = std::move(next);
    at = current.get();
    rest.remove_prefix(slash + 1);
  }
}

UniqueFd open_beneath(int directory, const std::string& path) {
  // The kernel gives up on a path with ".." when anything was renamed meanwhile, anywhere.
  constexpr int max_tries = 100;
  UniqueFd fd = real_openat2(directory, path);
  for (int i = 1; !fd && errno == EAGAIN && i < max_tries; ++i) fd = real_openat2(directory, path);
  // An old kernel, or a sandbox that does not know the call.
  if (!fd && (errno == ENOSYS || errno == EPERM)) return open_beneath_by_walking(directory, path);
  return fd;
}

LocalFiles::LocalFiles(const std::filesystem::path& root) {
  if (root.empty()) return;
  std::error_code error;
  spelled_root_ = std::filesystem::absolute(root, error);
  real_root_ = std::filesystem::canonical(root, error);
  directory_.reset(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (error || !directory_) {
    throw Error(ErrorCode::invalid_argument, "the allowed local media path is not a directory",
                root.string());
  }
}

std::optional<std::string> LocalFiles::path_below_root(std::string_view path) const {
  const std::string wanted = tidy(path);
  for (const std::filesystem::path& root : {spelled_root_, real_root_}) {
    const std::string start = tidy(root.string()) + "/";
    if (wanted.starts_with(start)) return wanted.substr(start.size());
  }
  return std::nullopt;
}

std::vector<std::byte> LocalFiles::read(std::string_view url, std::uint64_t max_bytes,
                                        const BytesWanted& wanted) const {
  if (!directory_) throw Error(ErrorCode::forbidden, "file: URLs are not allowed");
  const std::string path = path_of(url);
  const auto below = path_below_root(path);
  if (!below) fail_missing("outside the allowed directory: " + path);
  const UniqueFd fd = open_beneath(directory_.get(), *below);
  if (!fd) fail_missing(errno_text(errno) + ": " + path);
  std::vector<std::byte> bytes = read_regular(fd.get(), max_bytes, wanted);
  if (bytes.empty()) throw Error(ErrorCode::invalid_argument, "the media file is empty");
  return bytes;
}

}  // namespace vitrove
