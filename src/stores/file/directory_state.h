// What the writers of a directory tell each other: a small text file beside the values.
//
//   vitrove-file-store 1
//   counted 1                         somebody has counted the files
//   generation 7                      how often
//   base 123456                       bytes found by the last count
//   reserved 4096                     bytes granted since that count began
//   evictor TOKEN HOST PID EXPIRY     the lease of who counts and evicts now, if anybody does
//   writer TOKEN HOST PID CAPACITY SEEN
//   end CHECKSUM
//
// `base + reserved` is never less than what the writers put there, except for what a count forgets:
// grants that were given before it and not used by then. Times are milliseconds since the Unix
// epoch. A file that does not parse counts as absent: then somebody has to count again.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stores/file/process_identity.h"

namespace vitrove::file {

// How long anybody waits for the lock of the state file.
constexpr auto state_patience = std::chrono::seconds(10);

struct EvictorLease {
  ProcessIdentity holder;
  std::int64_t expiry_ms = 0;
  bool operator==(const EvictorLease&) const = default;
};

struct WriterRecord {
  ProcessIdentity writer;
  std::uint64_t capacity = 0;
  std::int64_t seen_ms = 0;
  bool operator==(const WriterRecord&) const = default;
};

struct DirectoryState {
  bool counted = false;
  std::uint64_t generation = 0;
  std::uint64_t base = 0;
  std::uint64_t reserved = 0;
  std::optional<EvictorLease> evictor;
  std::vector<WriterRecord> writers;

  bool operator==(const DirectoryState&) const = default;

  std::uint64_t used() const { return base + reserved; }
  // The smallest of the writers here, which is at least the caller when it has signed in.
  std::uint64_t capacity() const;
  std::uint64_t room() const { return capacity() - std::min(capacity(), used()); }
  bool has_writer(std::string_view token) const;

  // Forgets those that are not alive, as far as `self` can tell.
  void forget_the_gone(const ProcessIdentity& self, std::int64_t now_ms);
  // Does that, and notes that `self` is alive.
  void sign_in(const ProcessIdentity& self, std::uint64_t capacity, std::int64_t now_ms);
  void sign_out(const ProcessIdentity& self);
};

std::string to_text(const DirectoryState& state);
std::optional<DirectoryState> parse_state(std::string_view text);

std::int64_t wall_clock_ms();

// The file, changed by one writer at a time: flock, where the file system has it. Where it has not,
// an update may be lost; the next count repairs what that did to the sums.
class StateFile {
 public:
  explicit StateFile(std::string path) : path_(std::move(path)) {}

  // Runs `change` on the current state and writes it back. Answers 0 or errno; ETIMEDOUT when
  // others held the lock until the deadline. The directory must exist.
  int update(std::chrono::steady_clock::time_point deadline, int file_mode,
             const std::function<void(DirectoryState&)>& change) const;

  // What it says, for those who only look. Nothing when there is none, or none that parses.
  std::optional<DirectoryState> read() const;

 private:
  std::string path_;
};

}  // namespace vitrove::file
