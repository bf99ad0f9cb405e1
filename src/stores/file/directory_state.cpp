#include "stores/file/directory_state.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <limits>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "vitrove/digest.h"

namespace vitrove::file {
namespace {

constexpr std::string_view first_line = "vitrove-file-store 1\n";
constexpr std::size_t max_file_bytes = 64 * 1024;
constexpr std::size_t max_writers = 256;
// A writer shows itself once a minute; the rest is for stalls and for clocks that differ.
constexpr std::int64_t writer_expiry_ms = 5 * 60 * 1000;

std::string checksum_of(std::string_view text) { return to_hex(sha256(text)).substr(0, 16); }

// Takes words off the front of a line.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  std::string_view next() {
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(std::min(rest_.size(), word.size() + 1));
    return word;
  }
  template <typename Number>
  bool next(Number& number) {
    const std::string_view word = next();
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, number);
    return error == std::errc{} && stop == end && !word.empty();
  }
  bool next(ProcessIdentity& identity) {
    identity.token = next();
    identity.host = next();
    return identity.token.size() == 16 && identity.host.size() == 16 && next(identity.pid);
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

bool parse_line(std::string_view line, DirectoryState& state) {
  Words words(line);
  const std::string_view name = words.next();
  bool good = false;
  if (name == "counted") {
    int counted = 0;
    good = words.next(counted);
    state.counted = counted != 0;
  } else if (name == "generation") {
    good = words.next(state.generation);
  } else if (name == "base") {
    good = words.next(state.base);
  } else if (name == "reserved") {
    good = words.next(state.reserved);
  } else if (name == "evictor") {
    EvictorLease& lease = state.evictor.emplace();
    good = words.next(lease.holder) && words.next(lease.expiry_ms);
  } else if (name == "writer") {
    WriterRecord& writer = state.writers.emplace_back();
    good = words.next(writer.writer) && words.next(writer.capacity) && words.next(writer.seen_ms);
  }
  return good && words.at_end();
}

bool is_gone(const WriterRecord& record, const ProcessIdentity& self, std::int64_t now_ms) {
  const std::int64_t silent_ms = now_ms - record.seen_ms;
  return silent_ms > writer_expiry_ms || silent_ms < -writer_expiry_ms ||
         is_certainly_dead(record.writer, self);
}

int read_all(int fd, std::string& text) {
  text.resize(max_file_bytes);
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  if (size < 0) return errno;
  text.resize(static_cast<std::size_t>(size));
  return 0;
}

int write_all(int fd, const std::string& text) {
  const ssize_t written = ::pwrite(fd, text.data(), text.size(), 0);
  if (written < 0) return errno;
  if (static_cast<std::size_t>(written) != text.size()) return ENOSPC;
  return ::ftruncate(fd, written) == 0 ? 0 : errno;
}

bool has_no_locks(int error_number) {
  return error_number == ENOLCK || error_number == EOPNOTSUPP || error_number == ENOSYS ||
         error_number == EINVAL;
}

// Never blocks in the kernel beyond the deadline, as a plain flock would.
int lock_until(int fd, std::chrono::steady_clock::time_point deadline) {
  auto pause = std::chrono::microseconds(200);
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (has_no_locks(errno)) return 0;
    if (errno != EWOULDBLOCK && errno != EINTR) return errno;
    if (std::chrono::steady_clock::now() >= deadline) return ETIMEDOUT;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(10'000));
  }
  return 0;
}

bool is_same_file(int fd, const std::string& path) {
  struct stat ours;
  struct stat there;
  return ::fstat(fd, &ours) == 0 && ::stat(path.c_str(), &there) == 0 &&
         ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

}  // namespace

std::uint64_t DirectoryState::capacity() const {
  std::uint64_t smallest = std::numeric_limits<std::uint64_t>::max();
  for (const WriterRecord& record : writers) smallest = std::min(smallest, record.capacity);
  return smallest;
}

bool DirectoryState::has_writer(std::string_view token) const {
  return std::ranges::any_of(writers,
                             [&](const auto& record) { return record.writer.token == token; });
}

void DirectoryState::forget_the_gone(const ProcessIdentity& self, std::int64_t now_ms) {
  std::erase_if(writers, [&](const WriterRecord& record) { return is_gone(record, self, now_ms); });
}

void DirectoryState::sign_in(const ProcessIdentity& self, std::uint64_t own_capacity,
                             std::int64_t now_ms) {
  forget_the_gone(self, now_ms);
  sign_out(self);
  writers.push_back({self, own_capacity, now_ms});
}

void DirectoryState::sign_out(const ProcessIdentity& self) {
  std::erase_if(writers, [&](const auto& record) { return record.writer.token == self.token; });
}

std::string to_text(const DirectoryState& state) {
  const auto words = [](const ProcessIdentity& identity) {
    return identity.token + ' ' + identity.host + ' ' + std::to_string(identity.pid) + ' ';
  };
  std::string text(first_line);
  text += "counted " + std::to_string(state.counted ? 1 : 0) + '\n';
  text += "generation " + std::to_string(state.generation) + '\n';
  text += "base " + std::to_string(state.base) + '\n';
  text += "reserved " + std::to_string(state.reserved) + '\n';
  if (state.evictor) {
    text +=
        "evictor " + words(state.evictor->holder) + std::to_string(state.evictor->expiry_ms) + '\n';
  }
  const std::size_t skip = state.writers.size() - std::min(state.writers.size(), max_writers);
  for (std::size_t i = skip; i < state.writers.size(); ++i) {
    const WriterRecord& record = state.writers[i];
    text += "writer " + words(record.writer) + std::to_string(record.capacity) + ' ' +
            std::to_string(record.seen_ms) + '\n';
  }
  return text + "end " + checksum_of(text) + '\n';
}

std::optional<DirectoryState> parse_state(std::string_view text) {
  const std::size_t end = text.find("\nend ") + 1;
  if (end == 0 || !text.starts_with(first_line)) return std::nullopt;
  // What follows was left of a longer text by a writer that died before it could cut it off.
  const std::string last_line = "end " + checksum_of(text.substr(0, end)) + '\n';
  if (!text.substr(end).starts_with(last_line)) return std::nullopt;
  DirectoryState state;
  std::string_view lines = text.substr(first_line.size(), end - first_line.size());
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    if (!parse_line(line, state)) return std::nullopt;
  }
  // Sums that would overflow, and crowds, are nobody's honest count.
  if (state.base > state.base + state.reserved) return std::nullopt;
  if (state.writers.size() > max_writers) return std::nullopt;
  return state;
}

std::int64_t wall_clock_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int StateFile::update(std::chrono::steady_clock::time_point deadline, int file_mode,
                      const std::function<void(DirectoryState&)>& change) const {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const UniqueFd fd(
        ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, file_mode));
    if (!fd) return errno;
    // The umask has taken away what a shared root gives to its group. Not ours to change: no harm.
    if ((file_mode & 077) != 0) {
      static_cast<void>(::fchmod(fd.get(), static_cast<mode_t>(file_mode)) == 0);
    }
    if (const int error = lock_until(fd.get(), deadline)) return error;
    // Whoever held the lock may have removed the directory with the file in it.
    if (!is_same_file(fd.get(), path_)) continue;
    std::string text;
    if (const int error = read_all(fd.get(), text)) return error;
    DirectoryState state = parse_state(text).value_or(DirectoryState{});
    change(state);
    return write_all(fd.get(), to_text(state));
  }
  return ESTALE;
}

// Without the lock, which would need the right to write on some file systems: of a text that is
// being changed the checksum does not hold.
std::optional<DirectoryState> StateFile::read() const {
  constexpr int attempts = 5;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    std::string text;
    if (!fd || read_all(fd.get(), text) != 0) return std::nullopt;
    if (auto state = parse_state(text)) return state;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::nullopt;
}

}  // namespace vitrove::file
