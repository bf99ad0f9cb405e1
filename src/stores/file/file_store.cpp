#include "vitrove/file_store.h"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "stores/batch.h"
#include "stores/builtin_backends.h"
#include "stores/file/claims.h"
#include "stores/file/directory_maker.h"
#include "stores/file/errors.h"
#include "stores/file/fault_log.h"
#include "stores/file/layout.h"
#include "stores/file/space_keeper.h"
#include "stores/file/temporary_file.h"
#include "stores/file/transfer.h"
#include "stores/file/walk.h"
#include "vitrove/error.h"

namespace vitrove {
namespace file {
namespace {

// How old a modification time gets before a use renews it.
constexpr std::int64_t touch_interval_s = 60;
constexpr std::uint64_t written_at_once = std::uint64_t{1} << 20;  // by one system call

// What stands under a key's name. Neither an empty file (what some file systems make of an unsynced
// one after a power cut) nor anything that is not a regular file is a value.
struct Place {
  enum class Kind { nothing, value, empty, obstacle } kind = Kind::nothing;
  struct stat status {};
  int error_number = 0;  // why it could not be looked at

  std::uint64_t size() const { return static_cast<std::uint64_t>(status.st_size); }
};

Place::Kind kind_of(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return Place::Kind::obstacle;
  return status.st_size == 0 ? Place::Kind::empty : Place::Kind::value;
}

Place look_at(const std::string& path) {
  Place place;
  if (::lstat(path.c_str(), &place.status) == 0) {
    place.kind = kind_of(place.status);
  } else if (errno != ENOENT && errno != ESTALE) {
    place.error_number = errno;
  }
  return place;
}

// The errno that a read would give for a thing that is no file.
int obstacle_error(const struct stat& status) {
  if (S_ISDIR(status.st_mode)) return EISDIR;
  if (S_ISLNK(status.st_mode)) return ELOOP;
  return ENXIO;
}

// About one key, and nothing that is wrong with the store.
StoreResult in_the_way(int error_number) { return {StoreStatus::conflict, 0, error_number}; }

StoreResult answer_about(const Place& place) {
  if (place.error_number != 0) return failure(place.error_number);
  switch (place.kind) {
    case Place::Kind::value:
      return {StoreStatus::ok, place.size()};
    case Place::Kind::obstacle:
      return in_the_way(obstacle_error(place.status));
    default:
      return {StoreStatus::absent};
  }
}

class FileStore final : public EmbeddingStore {
 public:
  explicit FileStore(const FileStoreOptions& options)
      : options_(options),
        layout_(options.root),
        maker_(layout_, options.guest ? DirectoryMaker::Role::guest : DirectoryMaker::Role::writer),
        faults_(layout_.root()),
        keeper_(layout_, maker_, faults_, options),
        temporaries_(layout_, maker_, keeper_.identity()),
        claims_(layout_, temporaries_, keeper_.identity()) {}

  std::string_view name() const override { return "file"; }

  StoreCapabilities capabilities() const override {
    StoreCapabilities all;
    all.can_remove = all.can_list = all.can_replace = true;
    all.can_claim = !options_.guest;
    all.is_local = all.reports_pieces = true;
    all.max_value_bytes = options_.capacity - trimmed_room(options_.capacity);
    return all;
  }

  StoreHealth health() const override { return keeper_.health(); }

  int probe() { return keeper_.probe(); }

  std::vector<StoreResult> batch_get_into_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const MutableBufferList> buffers,
                                                        const StoreContext& context) override {
    if (keys.size() != buffers.size()) return same_for_all(keys.size(), StoreStatus::invalid);
    return for_each_key(keys.size(), context,
                        [&](std::size_t i) { return get(keys[i], buffers[i], i, context); });
  }

  std::vector<StoreResult> batch_put_from_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const ConstBufferList> buffers,
                                                        PutMode mode,
                                                        const StoreContext& context) override {
    if (keys.size() != buffers.size()) return same_for_all(keys.size(), StoreStatus::invalid);
    return for_each_key(keys.size(), context, [&](std::size_t i) {
      const StoreResult result = put(keys[i], buffers[i], mode, context);
      if (result.ok()) faults_.succeeded();
      if (result.is_fault() && result.error_number != 0) {
        faults_.failed("put", result.error_number);
      }
      if (result.status == StoreStatus::conflict) {
        faults_.noted("something that is no value is in a key's place", result.error_number);
      }
      return result;
    });
  }

  std::vector<StoreResult> batch_is_exist(std::span<const EmbeddingKey> keys,
                                          const StoreContext& context) override {
    return for_each_key(keys.size(), context, [&](std::size_t i) {
      return answer_about(look_at(layout_.path_of(keys[i])));
    });
  }

  std::vector<StoreResult> batch_remove(std::span<const EmbeddingKey> keys,
                                        const StoreContext& context) override {
    return for_each_key(keys.size(), context, [&](std::size_t i) { return remove(keys[i]); });
  }

  StoreResult list(const ListOptions& options, const std::function<bool(const ListedValue&)>& visit,
                   const StoreContext& context) override;

  StoreResult claim(const EmbeddingKey& key, std::chrono::milliseconds ttl, ClaimToken& token,
                    const StoreContext& context) override {
    if (options_.guest) return {StoreStatus::unsupported};
    if (const auto reason = stop_reason(context)) return {*reason};
    return claims_.claim(key, ttl, token);
  }
  StoreResult renew(const EmbeddingKey& key, const ClaimToken& token, std::chrono::milliseconds ttl,
                    const StoreContext& context) override {
    if (options_.guest) return {StoreStatus::unsupported};
    if (const auto reason = stop_reason(context)) return {*reason};
    return claims_.renew(key, token, ttl);
  }
  StoreResult release(const EmbeddingKey& key, const ClaimToken& token, ClaimOutcome,
                      const StoreContext& context) override {
    if (options_.guest) return {StoreStatus::unsupported};
    if (const auto reason = stop_reason(context)) return {*reason};
    return claims_.release(key, token);
  }

 private:
  StoreResult get(const EmbeddingKey& key, MutableBufferList buffers, std::size_t key_index,
                  const StoreContext& context);
  StoreResult put(const EmbeddingKey& key, ConstBufferList buffers, PutMode mode,
                  const StoreContext& context);
  StoreResult write(const EmbeddingKey& key, ConstBufferList buffers, std::uint64_t size,
                    PutMode mode, const Place& before, const StoreContext& context);
  StoreResult write_failure(int error_number);
  StoreResult remove(const EmbeddingKey& key);

  int publish(TemporaryFile& temporary, const std::string& path, PutMode mode);

  const FileStoreOptions options_;
  const Layout layout_;
  DirectoryMaker maker_;
  FaultLog faults_;
  SpaceKeeper keeper_;
  TemporaryFiles temporaries_;
  Claims claims_;
};

void touch_when_old(int fd, const struct stat& status) {
  struct timespec now;
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (now.tv_sec - status.st_mtim.tv_sec < touch_interval_s) return;
  // A file that is not ours, or a file system that is read-only: then nobody knows that it was
  // used.
  static_cast<void>(::futimens(fd, nullptr) == 0);
}

// Of a link or a socket in a value's place, or of the way there.
StoreResult open_failure(const std::string& path, int error_number) {
  const bool may_be_obstacle = error_number == ELOOP || error_number == ENXIO;
  if (may_be_obstacle && look_at(path).kind == Place::Kind::obstacle) {
    return in_the_way(error_number);
  }
  return failure(error_number);
}

StoreResult FileStore::get(const EmbeddingKey& key, MutableBufferList buffers,
                           std::size_t key_index, const StoreContext& context) {
  const std::uint64_t room = total_bytes(buffers);
  if (room == 0) return {StoreStatus::invalid};
  const std::string path = layout_.path_of(key);
  // Whatever may stand there, opening it neither blocks nor leads elsewhere.
  const UniqueFd fd(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd) return open_failure(path, errno);
  Place place;
  if (::fstat(fd.get(), &place.status) != 0) return failure(errno);
  place.kind = kind_of(place.status);
  const StoreResult there = answer_about(place);
  if (!there.ok()) return there;
  if (there.size != room) return {StoreStatus::size_mismatch, there.size};

  const int error = read_value(fd.get(), buffers, key_index, context);
  if (error == ENODATA) {  // cut short while we read
    return {StoreStatus::size_mismatch, ::fstat(fd.get(), &place.status) == 0 ? place.size() : 0};
  }
  if (error != 0) return failure(error, there.size);
  if (!options_.guest) touch_when_old(fd.get(), place.status);
  return there;
}

StoreResult FileStore::put(const EmbeddingKey& key, ConstBufferList buffers, PutMode mode,
                           const StoreContext& context) {
  const std::uint64_t size = total_bytes(buffers);
  const StoreStatus checked = check_value_size(size, capabilities().max_value_bytes);
  if (checked != StoreStatus::ok) return {checked};
  const std::string path = layout_.path_of(key);
  const Place before = look_at(path);
  if (before.error_number != 0) return put_failure(before.error_number);
  if (mode == PutMode::if_absent && before.kind == Place::Kind::value) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (fd && !options_.guest) touch_when_old(fd.get(), before.status);
    return {StoreStatus::ok, before.size()};
  }
  // A directory that is not empty stays: nothing need be written to find that out.
  if (before.kind == Place::Kind::obstacle && S_ISDIR(before.status.st_mode) &&
      ::rmdir(path.c_str()) != 0 && errno == ENOTEMPTY) {
    return in_the_way(ENOTEMPTY);
  }
  return write(key, buffers, size, mode, before, context);
}

StoreResult FileStore::write(const EmbeddingKey& key, ConstBufferList buffers, std::uint64_t size,
                             PutMode mode, const Place& before, const StoreContext& context) {
  auto [reserved, grant] = keeper_.reserve(size, context);
  if (!reserved.ok()) return reserved;
  auto [temporary, error] = temporaries_.make(key);
  if (error != 0) return write_failure(error);
  if (size > written_at_once) {
    // The whole size at once, so that a count sees what is coming.
    if (::ftruncate(temporary.fd(), static_cast<off_t>(size)) != 0) return write_failure(errno);
    grant.became_visible();
  }
  error = write_value(temporary.fd(), buffers, context);
  if (error != 0) return write_failure(error);
  grant.became_visible();
  if (options_.fsync && ::fdatasync(temporary.fd()) != 0) return write_failure(errno);
  error = publish(temporary, layout_.path_of(key), mode);
  if (error == EEXIST) return {StoreStatus::ok, size};  // somebody was faster
  if (error == ENOTEMPTY) return in_the_way(error);
  if (error != 0) return write_failure(error);
  grant.keep();
  if (before.kind == Place::Kind::value) {
    keeper_.note_replaced(disk_bytes(before.status));
  } else {
    keeper_.note_added();
  }
  if (options_.fsync) {
    const UniqueFd directory(
        ::open(layout_.directory_of(key).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory || ::fsync(directory.get()) != 0) return write_failure(errno);
  }
  return {StoreStatus::ok, size};
}

StoreResult FileStore::write_failure(int error_number) {
  const StoreResult result = put_failure(error_number);
  if (result.status == StoreStatus::no_space) keeper_.note_space_ran_out();
  return result;
}

// 0, EEXIST when a value stands there that `mode` leaves alone, or errno.
int FileStore::publish(TemporaryFile& temporary, const std::string& path, PutMode mode) {
  int error = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    error = temporary.publish(path, mode);
    if (error != EEXIST && error != EISDIR && error != ENOTEMPTY) return error;
    // What stands there and is no value has to go, whatever the mode.
    const Place place = look_at(path);
    if (place.kind == Place::Kind::value) return error;
    if (place.kind == Place::Kind::nothing) continue;  // removed just now
    if (S_ISDIR(place.status.st_mode) && ::rmdir(path.c_str()) != 0) return errno;
    mode = PutMode::replace;
  }
  return error;
}

StoreResult FileStore::remove(const EmbeddingKey& key) {
  const std::string path = layout_.path_of(key);
  const Place place = look_at(path);
  if (place.error_number != 0) return failure(place.error_number);
  if (place.kind == Place::Kind::nothing) return {StoreStatus::absent};
  const bool is_directory = S_ISDIR(place.status.st_mode);
  if ((is_directory ? ::rmdir(path.c_str()) : ::unlink(path.c_str())) != 0) return failure(errno);
  // Directories take room, too; these calls fail while there is anything in them.
  std::string directory = layout_.directory_of(key);
  if (::rmdir(directory.c_str()) == 0) {
    directory.resize(directory.rfind('/'));
    static_cast<void>(::rmdir(directory.c_str()) == 0);
  }
  if (place.kind != Place::Kind::value) return {StoreStatus::ok};
  keeper_.note_removed(disk_bytes(place.status));
  return {StoreStatus::ok, place.size()};
}

std::optional<HeaderBytes> read_header(int directory_fd, const char* name) {
  const UniqueFd fd(
      ::openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  HeaderBytes header;
  if (!fd || ::pread(fd.get(), header.data(), header.size(), 0) != std::ssize(header)) {
    return std::nullopt;
  }
  return header;
}

std::chrono::system_clock::time_point time_of(const struct timespec& time) {
  return std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(
          std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec)));
}

StoreResult FileStore::list(const ListOptions& options,
                            const std::function<bool(const ListedValue&)>& visit,
                            const StoreContext& context) {
  std::optional<StoreStatus> ended;
  const auto goes_on = [&] {
    ended = stop_reason(context);
    return !ended.has_value();
  };
  WalkVisitor visitor;
  visitor.on_directory = [&](const struct stat&) { return goes_on(); };
  visitor.on_entry = [&](const WalkEntry& entry) {
    const auto key = parse_value_name(entry.first, entry.second, entry.name);
    if (!key) return true;
    if (!goes_on()) return false;
    Place place;
    const std::string name(entry.name);
    const int failed =
        ::fstatat(entry.directory_fd, name.c_str(), &place.status, AT_SYMLINK_NOFOLLOW);
    if (failed != 0 || kind_of(place.status) != Place::Kind::value) return true;
    ListedValue value{*key, place.size(), time_of(place.status.st_mtim), std::nullopt};
    if (options.with_header) value.header = read_header(entry.directory_fd, name.c_str());
    return visit(value);
  };
  if (const auto reason = stop_reason(context)) return {*reason};
  const int error = walk(layout_, visitor);
  if (error == ENOENT) return {};  // nothing was ever written
  if (error != 0) return failure(error);
  return {ended.value_or(StoreStatus::ok)};
}

// Why a guest finds no store there; empty when there is one.
std::string why_no_store(const Layout& layout) {
  struct stat status;
  if (::stat(layout.base().c_str(), &status) == 0)
    return S_ISDIR(status.st_mode) ? "" : "the directory holds no store";
  if (errno != ENOENT && errno != ENOTDIR)
    return "the directory cannot be looked into: " + std::generic_category().message(errno);
  if (::stat(layout.root().c_str(), &status) != 0) return "the directory does not exist";
  return S_ISDIR(status.st_mode) ? "the directory holds no store" : "it is no directory";
}

}  // namespace
}  // namespace file

std::unique_ptr<EmbeddingStore> make_file_store(const FileStoreOptions& options) {
  const auto refuse = [](const std::string& why, const std::string& detail = {}) {
    throw Error(ErrorCode::invalid_argument, "file store: " + why, detail);
  };
  if (options.root.empty() || options.root == "/") {
    refuse("the directory is missing (as in file:///var/lib/vitrove)");
  }
  if (!options.root.is_absolute()) refuse("the directory is not absolute", options.root.string());
  if (options.capacity < (std::uint64_t{1} << 20)) refuse("the capacity is less than 1 MiB");
  if (options.lease <= std::chrono::milliseconds(0)) refuse("the lease has no length");
  if (options.guest) {
    const std::string reason = file::why_no_store(file::Layout(options.root));
    if (!reason.empty())
      throw Error(ErrorCode::unavailable, "file store: " + reason, options.root.string());
  }
  auto store = std::make_unique<file::FileStore>(options);
  if (options.strict) {
    if (const int error = store->probe()) {
      refuse("the directory cannot be used: " + std::generic_category().message(error),
             options.root.string());
    }
  }
  return store;
}

std::unique_ptr<EmbeddingStore> create_file_store(const StoreUrl& url, StoreOptions& options) {
  if (!url.host.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "file store: no host is expected; write file:///absolute/path");
  }
  FileStoreOptions chosen;
  chosen.root = url.path;
  chosen.capacity = options.bytes("capacity", chosen.capacity);
  chosen.fsync = options.flag("fsync", chosen.fsync);
  chosen.strict = options.flag("strict", chosen.strict);
  chosen.guest = options.flag("guest", chosen.guest);
  options.reject_unknown();
  return make_file_store(chosen);
}

}  // namespace vitrove
