#include "vitrove/model_fingerprint.h"

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>

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

// Reads a file one piece ahead of whoever takes the pieces: the disk does not wait for the CPU.
class ReadAhead {
 public:
  ReadAhead(int file, const std::filesystem::path& path)
      : file_(file), path_(path), thread_([this](const std::stop_token& stop) { run(stop); }) {}

  // The next piece, valid until the next call; one that is not full is the last.
  const Piece& next() {
    std::unique_lock lock(mutex_);
    given_back_ = taken_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return filled_ > taken_ || error_; });
    if (filled_ == taken_) std::rethrow_exception(error_);
    return pieces_[taken_++ % pieces_.size()];
  }

 private:
  void run(const std::stop_token& stop);

  const int file_;
  const std::filesystem::path& path_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::array<Piece, 2> pieces_;
  // Counts of pieces.
  std::size_t filled_ = 0;
  std::size_t taken_ = 0;
  std::size_t given_back_ = 0;
  std::exception_ptr error_;
  std::jthread thread_;  // last: it uses all the others
};

void ReadAhead::run(const std::stop_token& stop) {
  bool is_last = false;
  while (!is_last) {
    std::unique_lock lock(mutex_);
    const auto has_room = [this] { return filled_ - given_back_ < pieces_.size(); };
    if (!changed_.wait(lock, stop, has_room)) return;
    Piece& piece = pieces_[filled_ % pieces_.size()];
    lock.unlock();
    std::exception_ptr error;
    try {
      read_piece(file_, path_, piece);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error;
    filled_ += error ? 0 : 1;
    is_last = error || !piece.is_full();
    changed_.notify_all();
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

  ReadAhead ahead(file.get(), path);
  Sha256 hash;
  for (;;) {
    const Piece& piece = ahead.next();
    hash.update(piece.bytes());
    if (!piece.is_full()) return hash.finish();
  }
}

}  // namespace vitrove
