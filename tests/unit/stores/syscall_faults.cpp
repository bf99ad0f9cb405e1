#include "unit/stores/syscall_faults.h"

#include <array>
#include <cerrno>
#include <mutex>

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "unit/stores/moved_bytes.h"

namespace vitrove::testing {
namespace {

struct Slot {
  bool armed = false;
  FaultPlan plan;
  int hits = 0;
};

struct Slots {
  std::mutex mutex;
  std::array<Slot, 10> slots;
  Slot& of(Syscall call) { return slots.at(static_cast<std::size_t>(call)); }
};

// A function's own static: calls may come before and after main().
Slots& all_slots() {
  static Slots* const slots = new Slots;
  return *slots;
}

// The errno with which this call has to fail, or 0.
int consult(Syscall call) {
  Gate* gate = nullptr;
  int error = 0;
  {
    Slots& slots = all_slots();
    std::lock_guard lock(slots.mutex);
    Slot& slot = slots.of(call);
    if (!slot.armed) return 0;
    if (slot.plan.skip > 0) {
      --slot.plan.skip;
      return 0;
    }
    if (slot.plan.times <= 0) return 0;
    --slot.plan.times;
    ++slot.hits;
    gate = slot.plan.gate;
    error = slot.plan.error;
  }
  if (gate != nullptr) gate->pass();
  return error;
}

template <typename... Args>
long call_or_fail(Syscall call, long number, Args... args) {
  if (const int error = consult(call)) {
    errno = error;
    return -1;
  }
  return ::syscall(number, args...);
}

}  // namespace

ScopedFault::ScopedFault(Syscall call, const FaultPlan& plan) : call_(call) {
  std::lock_guard lock(all_slots().mutex);
  all_slots().of(call) = {true, plan, 0};
}

ScopedFault::~ScopedFault() {
  std::lock_guard lock(all_slots().mutex);
  all_slots().of(call_).armed = false;
}

int ScopedFault::hits() const {
  std::lock_guard lock(all_slots().mutex);
  return all_slots().of(call_).hits;
}

}  // namespace vitrove::testing

using vitrove::testing::call_or_fail;
using vitrove::testing::note_moved;
using vitrove::testing::Syscall;

extern "C" {

ssize_t preadv(int fd, const iovec* vector, int count, off_t offset) {
  const ssize_t moved = call_or_fail(Syscall::preadv, SYS_preadv, fd, vector, count, offset, 0L);
  return note_moved({vector, static_cast<std::size_t>(count)}, moved);
}
ssize_t pwritev(int fd, const iovec* vector, int count, off_t offset) {
  const ssize_t moved = call_or_fail(Syscall::pwritev, SYS_pwritev, fd, vector, count, offset, 0L);
  return note_moved({vector, static_cast<std::size_t>(count)}, moved);
}
int ftruncate(int fd, off_t size) noexcept {
  return static_cast<int>(call_or_fail(Syscall::ftruncate, SYS_ftruncate, fd, size));
}
int fdatasync(int fd) {
  return static_cast<int>(call_or_fail(Syscall::fdatasync, SYS_fdatasync, fd));
}
int renameat2(int old_directory, const char* old_path, int new_directory, const char* new_path,
              unsigned int flags) noexcept {
  return static_cast<int>(call_or_fail(Syscall::renameat2, SYS_renameat2, old_directory, old_path,
                                       new_directory, new_path, flags));
}
int link(const char* old_path, const char* new_path) noexcept {
  return static_cast<int>(
      call_or_fail(Syscall::link, SYS_linkat, AT_FDCWD, old_path, AT_FDCWD, new_path, 0));
}
int mkdir(const char* path, mode_t mode) noexcept {
  return static_cast<int>(call_or_fail(Syscall::mkdir, SYS_mkdirat, AT_FDCWD, path, mode));
}
int unlink(const char* path) noexcept {
  return static_cast<int>(call_or_fail(Syscall::unlink, SYS_unlinkat, AT_FDCWD, path, 0));
}
int flock(int fd, int operation) noexcept {
  return static_cast<int>(call_or_fail(Syscall::flock, SYS_flock, fd, operation));
}
int fstatat(int directory, const char* path, struct stat* status, int flags) noexcept {
  return static_cast<int>(
      call_or_fail(Syscall::fstatat, SYS_newfstatat, directory, path, status, flags));
}

}  // extern "C"
