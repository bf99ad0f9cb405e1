#include "stores/file/evictor.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stores/file/claims.h"
#include "stores/file/walk.h"

namespace vitrove::file {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t modified_ns(const struct stat& status) {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

std::int64_t wall_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Evictor::Evictor(const Layout& layout, const StateFile& state_file, DirectoryMaker& maker,
                 ProcessIdentity self, const FileStoreOptions& options)
    : layout_(layout),
      state_file_(state_file),
      maker_(maker),
      self_(std::move(self)),
      own_capacity_(options.capacity),
      temporary_age_(options.temporary_age),
      lease_(options.lease) {}

int Evictor::update(const std::function<void(DirectoryState&)>& change) {
  return state_file_.update(Clock::now() + state_patience, static_cast<int>(maker_.file_mode()),
                            change);
}

// A holder is gone for certain, its lease ran out long ago by the clock on the wall, or (should
// clocks differ) it has not been renewed for the length of a lease by our own clock.
bool Evictor::may_take(const std::optional<EvictorLease>& lease) {
  if (!lease || lease->holder.token == self_.token) return true;
  if (is_certainly_dead(lease->holder, self_)) return true;
  if (wall_clock_ms() > lease->expiry_ms + lease_.count()) return true;
  if (watched_ != lease) {
    watched_ = lease;
    watched_since_ = Clock::now();
  }
  return Clock::now() - watched_since_ > lease_;
}

int Evictor::begin() {
  files_.clear();
  bytes_ = 0;
  removed_files_ = 0;
  is_stuck_ = false;
  bool taken = false;
  const int error = update([&](DirectoryState& state) {
    state.sign_in(self_, own_capacity_, wall_clock_ms());
    taken = may_take(state.evictor);
    if (taken) state.evictor = EvictorLease{self_, wall_clock_ms() + lease_.count()};
    begun_ = state;
  });
  renewed_ = Clock::now();
  if (error != 0) return error;
  return taken ? 0 : EBUSY;
}

int Evictor::keep_lease(const std::stop_token& stop) {
  if (stop.stop_requested()) return ECANCELED;
  if (Clock::now() - renewed_ < lease_ / 4) return 0;
  bool ours = false;
  const int error = update([&](DirectoryState& state) {
    ours = state.evictor && state.evictor->holder.token == self_.token;
    if (ours) state.evictor->expiry_ms = wall_clock_ms() + lease_.count();
  });
  renewed_ = Clock::now();
  return error == 0 && !ours ? ECANCELED : error;
}

int Evictor::count(const std::stop_token& stop) {
  int lost = 0;
  WalkVisitor visitor;
  visitor.on_directory = [&](const struct stat& status) {
    bytes_ += disk_bytes(status);
    lost = keep_lease(stop);
    return lost == 0;
  };
  visitor.on_entry = [&](const WalkEntry& entry) {
    see(entry.directory_fd, entry.first, entry.second, entry.name);
    return true;
  };
  struct stat status;
  if (::lstat(layout_.state_path().c_str(), &status) == 0) bytes_ += disk_bytes(status);
  const int error = walk(layout_, visitor);
  return error != 0 ? error : lost;
}

void Evictor::see(int directory_fd, std::string_view first, std::string_view second,
                  std::string_view name) {
  const auto key = parse_value_name(first, second, name);
  const auto writer = parse_temporary_name(name);
  const bool is_claim = is_claim_name(first, second, name);
  if (!key && !writer && !is_claim) return;
  struct stat status;
  const std::string text(name);
  if (::fstatat(directory_fd, text.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (!S_ISREG(status.st_mode)) return;
  if (writer && is_orphan(*writer, modified_ns(status)) &&
      ::unlinkat(directory_fd, text.c_str(), 0) == 0) {
    return;
  }
  if (is_claim && is_claim_over(directory_fd, text.c_str(), self_) &&
      ::unlinkat(directory_fd, text.c_str(), 0) == 0) {
    return;
  }
  // Of a file that nobody goes on with, the bytes that were never written take no room.
  const bool is_abandoned = writer && !begun_.has_writer(writer->token);
  bytes_ += is_abandoned ? allocated_bytes(status) : disk_bytes(status);
  if (key) files_.push_back({*key, modified_ns(status), disk_bytes(status)});
}

// The dead of this host leave nothing behind: a server that crashes over and over would fill the
// directory with halves of values, and push out the whole ones. Elsewhere only time tells.
bool Evictor::is_orphan(const ProcessIdentity& writer, std::int64_t modified) const {
  if (is_certainly_dead(writer, self_)) return true;
  return !begun_.has_writer(writer.token) && wall_clock_ns() - modified >= temporary_age_.count();
}

int Evictor::trim(const Order& order, const std::stop_token& stop) {
  const std::uint64_t capacity = begun_.capacity();
  std::uint64_t granted = 0;  // since begin(), whether count() has seen it or not
  if (const int error = update([&](DirectoryState& state) {
        granted = state.reserved - std::min(state.reserved, begun_.reserved);
      })) {
    return error;
  }
  const auto used = [&] { return bytes_ + order.unseen + granted; };
  std::uint64_t removable = 0;
  for (const FoundFile& file : files_) removable += file.bytes;
  const bool is_in_vain = used() - std::min(used(), removable) + order.least > capacity;
  const std::uint64_t room = is_in_vain ? 0 : std::min(order.room, capacity);
  std::uint64_t target = capacity - std::max(trimmed_room(capacity), room);
  if (order.shrink) target = std::min(target, used() / 8 * 7);
  const bool full = used() + std::max(room, full_room(capacity)) > capacity;
  is_stuck_ = is_in_vain;
  if (!order.shrink && !full) return 0;

  std::ranges::sort(files_, {}, &FoundFile::used_ns);
  for (const FoundFile& file : files_) {
    if (used() <= target) break;
    if (const int error = keep_lease(stop)) return error;
    remove(file);
  }
  is_stuck_ = used() + order.least > capacity;
  return 0;
}

void Evictor::remove(const FoundFile& file) {
  const std::string path = layout_.path_of(file.key);
  struct stat status;
  if (::lstat(path.c_str(), &status) == 0) {
    if (modified_ns(status) != file.used_ns) return;  // used or written anew since it was counted
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return;
  } else if (errno != ENOENT) {
    return;
  }
  bytes_ -= file.bytes;
  ++removed_files_;
  // Empty directories count, too. Who is about to write there makes them again.
  std::string directory = layout_.directory_of(file.key);
  for (int level = 0; level < 2; ++level) {
    if (::lstat(directory.c_str(), &status) != 0) return;
    if (::rmdir(directory.c_str()) != 0) return;
    bytes_ -= std::min(bytes_, disk_bytes(status));
    directory.resize(directory.rfind('/'));
  }
}

int Evictor::publish(std::uint64_t unseen) {
  bool ours = false;
  const int error = update([&](DirectoryState& state) {
    ours = state.evictor && state.evictor->holder.token == self_.token;
    if (!ours) return;
    state.base = bytes_ + unseen;
    state.reserved -= std::min(state.reserved, begun_.reserved);
    state.counted = true;
    ++state.generation;
    state.evictor.reset();
    published_ = state;
  });
  if (error != 0) return error;
  return ours ? 0 : ECANCELED;
}

void Evictor::abandon() {
  update([&](DirectoryState& state) {
    if (state.evictor && state.evictor->holder.token == self_.token) state.evictor.reset();
  });
}

}  // namespace vitrove::file
