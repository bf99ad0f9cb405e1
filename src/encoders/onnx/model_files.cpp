#include "encoders/onnx/model_files.h"

#include <cerrno>
#include <cstring>
#include <span>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/environment.h"
#include "base/unique_fd.h"
#include "encoders/onnx/external_data.h"
#include "vitrove/error.h"
#include "vitrove/model_fingerprint.h"

namespace vitrove {
namespace {

[[noreturn]] void throw_unreadable(const std::filesystem::path& path) {
  throw Error(ErrorCode::invalid_argument, "the model directory has no readable model.onnx",
              path.string() + ": " + errno_text(errno));
}

// Mapped rather than read: the walk skips over weights, which may be gigabytes.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0) throw_unreadable(path);
    size_ = static_cast<std::size_t>(status.st_size);
    if (!S_ISREG(status.st_mode) || size_ == 0) {
      throw Error(ErrorCode::invalid_argument, "model.onnx is empty or not a regular file",
                  path.string());
    }
    data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (data_ == MAP_FAILED) throw_unreadable(path);
  }
  ~MappedFile() { ::munmap(data_, size_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

void require_external(const std::filesystem::path& directory, const std::string& location) {
  if (!is_safe_location(location)) {
    throw Error(ErrorCode::invalid_argument,
                "model.onnx keeps weights outside of its directory, which is not allowed",
                location);
  }
  std::error_code ignored;
  if (std::filesystem::is_regular_file(directory / location, ignored)) return;
  throw Error(ErrorCode::invalid_argument,
              "model.onnx needs the weights file '" + location + "', which is missing",
              (directory / location).string());
}

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// All zero for a file that is not there; whoever opens it says so.
FileState state_of(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino, status.st_size, nanoseconds(status.st_mtim),
          nanoseconds(status.st_ctim)};
}

}  // namespace

ModelFiles find_model_files(const std::filesystem::path& directory) {
  ModelFiles files;
  files.graph = directory / "model.onnx";
  files.states.emplace(files.graph, state_of(files.graph));
  files.external = external_data_locations(MappedFile(files.graph).bytes());
  for (const std::string& location : files.external) {
    files.states.emplace(directory / location, state_of(directory / location));
    require_external(directory, location);
  }
  return files;
}

void require_unchanged(const ModelFiles& files) {
  for (const auto& [path, state] : files.states) {
    if (state_of(path) == state) continue;
    throw Error(ErrorCode::invalid_argument, "the model's files changed while they were loaded",
                path.string());
  }
}

std::map<std::string, Digest256> digest_model_files(const ModelFiles& files) {
  std::map<std::string, Digest256> digests;
  digests.emplace("model.onnx", digest_file(files.graph));
  for (const std::string& location : files.external) {
    digests.emplace("external:" + location, digest_file(files.graph.parent_path() / location));
  }
  return digests;
}

}  // namespace vitrove
