#include "vitrove/model_fingerprint.h"

#include <cerrno>
#include <cstring>
#include <functional>
#include <future>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/unique_fd.h"
#include "identity/canonical_encoder.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

[[noreturn]] void throw_unreadable(const std::filesystem::path& path, int error_number) {
  throw Error(ErrorCode::not_found, "a model file cannot be read",
              path.string() + ": " + errno_text(error_number));
}

void require_regular(int file, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(file, &status) != 0) throw_unreadable(path, errno);
  if (!S_ISREG(status.st_mode)) throw_unreadable(path, S_ISDIR(status.st_mode) ? EISDIR : EINVAL);
}

class Piece {
 public:
  bool is_full() const { return used_ == size; }
  std::span<const std::byte> bytes() const { return std::span(buffer_).first(used_); }
  std::span<std::byte> room() { return std::span(buffer_).subspan(used_); }
  void clear() { used_ = 0; }
  void grow(std::size_t by) { used_ += by; }

 private:
  static constexpr std::size_t size = 1024 * 1024;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(size);
  std::size_t used_ = 0;
};

// Fills the piece; it stays short only at the end of the file.
void read_piece(int file, const std::filesystem::path& path, Piece& piece) {
  piece.clear();
  while (!piece.is_full()) {
    const ssize_t got = ::read(file, piece.room().data(), piece.room().size());
    if (got == 0) return;
    if (got > 0) {
      piece.grow(static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      throw_unreadable(path, errno);
    }
  }
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
  // Non-blocking, so that a pipe in a model directory is refused instead of waited for.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) throw_unreadable(path, errno);
  require_regular(file.get(), path);
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);

  // The next piece is read while this one is hashed: the disk does not wait for the CPU.
  Piece piece;
  Piece next;
  Sha256 hash;
  read_piece(file.get(), path, piece);
  while (piece.is_full()) {
    auto reading =
        std::async(std::launch::async, read_piece, file.get(), std::cref(path), std::ref(next));
    hash.update(piece.bytes());
    reading.get();
    std::swap(piece, next);
  }
  hash.update(piece.bytes());
  return hash.finish();
}

}  // namespace vitrove
