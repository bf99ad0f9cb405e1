// One count of a directory, and the removal of what was used longest ago.
//
// A pass is begin, count, trim, publish. Between begin and publish the evictor holds the lease in
// the state file and renews it; when it finds the lease taken by another it gives up (ECANCELED).
// Not thread-safe: the keeper's background thread is its only user, except for begin(), which the
// keeper calls under its own lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "stores/file/directory_maker.h"
#include "stores/file/directory_state.h"
#include "stores/file/layout.h"
#include "vitrove/file_store.h"

namespace vitrove::file {

// Room that a full directory is trimmed to have, and room below which it counts as full.
constexpr std::uint64_t trimmed_room(std::uint64_t capacity) { return capacity / 16; }
constexpr std::uint64_t full_room(std::uint64_t capacity) { return capacity / 32; }

class Evictor {
 public:
  Evictor(const Layout& layout, const StateFile& state_file, DirectoryMaker& maker,
          ProcessIdentity self, const FileStoreOptions& options);

  // Takes the lease. 0; EBUSY when another has it; or errno.
  int begin();
  // Sees every file, and removes temporary ones that nobody will finish.
  int count(const std::stop_token& stop);
  struct Order {
    std::uint64_t room = 0;   // bytes that shall fit
    std::uint64_t least = 0;  // of these, what has to: else nothing is removed for the rest
    bool shrink = false;      // an eighth of what is there has to go in any case
    // Of puts that were granted before begin() and may have been missed by count().
    std::uint64_t unseen = 0;
  };
  int trim(const Order& order, const std::stop_token& stop);
  // Writes down what there is and gives the lease back.
  int publish(std::uint64_t unseen);
  // Gives the lease back without a word.
  void abandon();

  // The outcome.
  // Not even the removal of all values would make room for the least that was ordered.
  bool is_stuck() const { return is_stuck_; }
  std::uint64_t entries() const { return files_.size() - removed_files_; }
  const DirectoryState& published() const { return published_; }

 private:
  struct FoundFile {
    EmbeddingKey key;
    std::int64_t used_ns = 0;  // modification time
    std::uint64_t bytes = 0;
  };

  bool may_take(const std::optional<EvictorLease>& lease);
  int keep_lease(const std::stop_token& stop);
  int update(const std::function<void(DirectoryState&)>& change);
  void see(int directory_fd, std::string_view first, std::string_view second,
           std::string_view name);
  bool is_orphan(const ProcessIdentity& writer, std::int64_t modified_ns) const;
  void remove(const FoundFile& file);

  const Layout& layout_;
  const StateFile& state_file_;
  DirectoryMaker& maker_;
  const ProcessIdentity self_;
  const std::uint64_t own_capacity_;
  const std::chrono::nanoseconds temporary_age_;
  const std::chrono::milliseconds lease_;

  // Of the pass that runs.
  DirectoryState begun_;
  std::chrono::steady_clock::time_point renewed_{};
  std::vector<FoundFile> files_;
  std::uint64_t bytes_ = 0;
  std::uint64_t removed_files_ = 0;
  bool is_stuck_ = false;
  DirectoryState published_;

  // Another's lease, and since when it has not changed.
  std::optional<EvictorLease> watched_;
  std::chrono::steady_clock::time_point watched_since_{};
};

}  // namespace vitrove::file
