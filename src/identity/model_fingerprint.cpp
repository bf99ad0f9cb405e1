#include "vitrove/model_fingerprint.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "identity/canonical_encoder.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

[[noreturn]] void throw_unreadable(const std::filesystem::path& path, int error_number) {
  throw Error(ErrorCode::not_found, "a model file cannot be read",
              path.string() + ": " + std::strerror(error_number));
}

}  // namespace

Digest256 model_fingerprint(const FingerprintParts& parts) {
  CanonicalEncoder encoder;
  encoder.text("vitrove.model");
  encoder.natural(1);
  encoder.map_head(parts.files.size());
  for (const auto& [role, content] : parts.files) {
    encoder.text(role);
    encoder.digest(content);
  }
  encoder.map_head(parts.settings.size());
  for (const auto& [name, value] : parts.settings) {
    encoder.text(name);
    encoder.text(value);
  }
  return sha256(encoder.view());
}

Digest256 digest_file(const std::filesystem::path& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw_unreadable(path, errno);
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);

  // Small enough to stay in the second-level cache between read and hash.
  std::vector<std::byte> buffer(256 * 1024);
  Sha256 hash;
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got == 0) return hash.finish();
    if (got > 0) {
      hash.update(std::span(buffer).first(static_cast<std::size_t>(got)));
    } else if (errno != EINTR) {
      throw_unreadable(path, errno);
    }
  }
}

}  // namespace vitrove
