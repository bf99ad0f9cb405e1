#include "stores/file/claims.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stores/file/errors.h"

namespace vitrove::file {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds longest_ttl = std::chrono::hours(24);
// Of a claim that cannot be read.
constexpr milliseconds unknown_ttl = std::chrono::minutes(1);
// More than are let go at about the same time.
constexpr std::size_t most_spares = 32;
// How far apart clocks of hosts may be, where there is no asking the file system's.
constexpr nanoseconds clock_tolerance = std::chrono::minutes(1);

// What stands under a claim's name.
struct FoundClaim {
  std::string token;  // empty when it cannot be read
  ProcessIdentity holder;
  milliseconds ttl = unknown_ttl;
  nanoseconds renewed{0};  // the file system's time
};

std::string to_text(const ProcessIdentity& holder, milliseconds ttl, std::string_view number) {
  const std::int64_t length = std::clamp(ttl, milliseconds(1), longest_ttl).count();
  std::array<char, 200> text;
  const int size =
      std::snprintf(text.data(), text.size(), "vitrove-claim 1 %s %s %ld %012ld %.*s\n",
                    holder.token.c_str(), holder.host.c_str(), static_cast<long>(holder.pid),
                    static_cast<long>(length), static_cast<int>(number.size()), number.data());
  return {text.data(), static_cast<std::size_t>(size)};
}

bool take_number(std::string_view word, std::int64_t& number) {
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number);
  return error == std::errc{} && stop == end && !word.empty();
}

// Leaves the claim as it was when the text is not one.
void parse(std::string_view text, FoundClaim& claim) {
  if (!text.ends_with('\n')) return;
  text.remove_suffix(1);
  std::array<std::string_view, 7> words;
  for (std::string_view& word : words) {
    word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  const auto& [magic, version, token, host, pid, ttl, number] = words;
  std::int64_t length = 0;
  ProcessIdentity holder{std::string(token), std::string(host), 0};
  if (magic != "vitrove-claim" || version != "1" || !text.empty() || number.empty()) return;
  if (!take_number(pid, holder.pid) || !take_number(ttl, length) || length <= 0) return;
  claim.holder = std::move(holder);
  claim.ttl = std::min(milliseconds(length), longest_ttl);
  claim.token = std::string(token) + '-' + std::string(number);
}

nanoseconds modified(const struct stat& status) {
  return std::chrono::seconds(status.st_mtim.tv_sec) + nanoseconds(status.st_mtim.tv_nsec);
}

// 0 or errno.
int read_claim(int fd, FoundClaim& claim) {
  struct stat status;
  if (::fstat(fd, &status) != 0) return errno;
  if (!S_ISREG(status.st_mode)) return EISDIR;
  claim.renewed = modified(status);
  std::array<char, 256> text;
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  if (size < 0) return errno;
  parse({text.data(), static_cast<std::size_t>(size)}, claim);
  return 0;
}

// ENOENT when there is none.
int look_at(const std::string& path, FoundClaim& claim) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return fd ? read_claim(fd.get(), claim) : errno;
}

nanoseconds wall_clock() {
  return std::chrono::duration_cast<nanoseconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

// A claim out of the future is one from before a clock was set back.
bool is_in_time(const FoundClaim& claim, nanoseconds now, nanoseconds tolerance) {
  const nanoseconds age = now - claim.renewed;
  return age <= claim.ttl + tolerance && age >= -(claim.ttl + tolerance);
}

int write_record(int fd, const std::string& text) {
  const ssize_t written = ::pwrite(fd, text.data(), text.size(), 0);
  if (written < 0) return errno;
  return static_cast<std::size_t>(written) == text.size() ? 0 : ENOSPC;
}

// Instead of what was there. Not emptied first, which file systems take for a sign of haste.
int rewrite_record(int fd, const std::string& text) {
  if (const int error = write_record(fd, text)) return error;
  struct stat status;
  if (::fstat(fd, &status) != 0) return errno;
  const auto size = static_cast<off_t>(text.size());
  if (status.st_size == size) return 0;
  return ::ftruncate(fd, size) == 0 ? 0 : errno;
}

StoreResult not_ours() { return {StoreStatus::conflict}; }

}  // namespace

Claims::~Claims() {
  for (const std::string& spare : spares_) ::unlink(spare.c_str());
}

void Claims::keep_spare(std::string path) {
  std::unique_lock lock(mutex_);
  if (spares_.size() < most_spares) return spares_.push_back(std::move(path));
  lock.unlock();
  ::unlink(path.c_str());
}

std::optional<TemporaryFile> Claims::take_spare() {
  std::string path;
  {
    std::lock_guard lock(mutex_);
    if (spares_.empty()) return std::nullopt;
    path = std::move(spares_.back());
    spares_.pop_back();
  }
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  TemporaryFile spare(std::move(path), std::move(fd));
  if (spare.fd() < 0) return std::nullopt;  // somebody has swept the directory
  return spare;
}

StoreResult Claims::claim(const EmbeddingKey& key, milliseconds ttl, ClaimToken& token) {
  const std::string path = layout_.claim_path(key);
  FoundClaim other;
  const int found = look_at(path, other);
  if (found != 0 && found != ENOENT) return put_failure(found);
  const bool is_dead = found == 0 && is_certainly_dead(other.holder, self_);
  // Mostly it is in time by our own clock too, and that costs no file.
  if (found == 0 && !is_dead && is_in_time(other, wall_clock(), {})) return not_ours();

  std::optional<TemporaryFile> temporary = take_spare();
  const bool is_spare = temporary.has_value();
  if (!is_spare) {
    auto [made, error] = temporaries_.make(key);
    if (error != 0) return put_failure(error);
    temporary.emplace(std::move(made));
  }
  const std::string number = std::to_string(number_.fetch_add(1));
  const int unwritten = rewrite_record(temporary->fd(), to_text(self_, ttl, number));
  if (unwritten != 0) return put_failure(unwritten);
  if (found == 0) {
    struct stat now;
    if (::fstat(temporary->fd(), &now) != 0) return put_failure(errno);
    if (!is_dead && is_in_time(other, modified(now), {})) return not_ours();
    const auto [is_it, aside] = take_away(key, path, other.token);
    if (!is_it) return not_ours();
    if (!aside.empty()) ::unlink(aside.c_str());
  }
  int unpublished = temporary->publish(path, PutMode::if_absent);
  if (unpublished == ENOENT && is_spare && temporaries_.make_directory(key) == 0) {
    unpublished = temporary->publish(path, PutMode::if_absent);
  }
  if (unpublished == EEXIST) return not_ours();
  if (unpublished != 0) return put_failure(unpublished);
  token.value = self_.token + '-' + number;
  return {};
}

StoreResult Claims::renew(const EmbeddingKey& key, const ClaimToken& token, milliseconds ttl) {
  // A claim that is released meanwhile becomes a spare only afterwards: by then it may be another's
  // record that we would write over.
  std::lock_guard lock(mutex_);
  const UniqueFd fd(
      ::open(layout_.claim_path(key).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return errno == ENOENT ? not_ours() : failure(errno);
  FoundClaim found;
  if (const int error = read_claim(fd.get(), found)) return failure(error);
  if (found.token.empty() || found.token != token.value) return not_ours();
  const std::string_view number = std::string_view(token.value).substr(self_.token.size() + 1);
  // Writing it anew sets its time by the clock of the file system.
  const int error = write_record(fd.get(), to_text(self_, ttl, number));
  return error == 0 ? StoreResult{} : put_failure(error);
}

StoreResult Claims::release(const EmbeddingKey& key, const ClaimToken& token) {
  const std::string path = layout_.claim_path(key);
  FoundClaim found;
  const int error = look_at(path, found);
  if (error != 0 && error != ENOENT) return failure(error);
  if (error == ENOENT || found.token.empty() || found.token != token.value) return not_ours();
  auto [is_it, aside] = take_away(key, path, found.token);
  if (!is_it) return not_ours();
  if (!aside.empty()) keep_spare(std::move(aside));
  return {};
}

// Under a name of our own first, so that of two who take the same claim away only one does, and
// what somebody else put there in between is noticed, and put back.
std::pair<bool, std::string> Claims::take_away(const EmbeddingKey& key, const std::string& path,
                                               const std::string& token) {
  std::string aside = temporaries_.name_for(key);
  if (::rename(path.c_str(), aside.c_str()) != 0) return {errno == ENOENT, {}};
  FoundClaim taken;
  if (look_at(aside, taken) == 0 && taken.token == token) return {true, std::move(aside)};
  if (rename_to_new(aside, path) != 0) ::unlink(aside.c_str());
  return {false, {}};
}

bool is_claim_over(int directory_fd, const char* name, const ProcessIdentity& self) {
  const UniqueFd fd(::openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  FoundClaim claim;
  if (!fd || read_claim(fd.get(), claim) != 0) return false;
  return is_certainly_dead(claim.holder, self) || !is_in_time(claim, wall_clock(), clock_tolerance);
}

}  // namespace vitrove::file
