// Makes system calls of this test program fail or wait, without root, FUSE or a full disk: the
// program defines those functions of the C library itself (syscall_faults.cpp).
#pragma once

#include <limits>

#include "contract/gate.h"

namespace vitrove::testing {

enum class Syscall {
  preadv,
  pwritev,
  ftruncate,
  fdatasync,
  renameat2,
  link,
  mkdir,
  flock,
  fstatat,
  unlink
};

struct FaultPlan {
  int error = 0;  // 0: the call goes through, after the gate
  int skip = 0;   // calls to let pass first
  int times = std::numeric_limits<int>::max();
  Gate* gate = nullptr;  // where the call waits before it goes on
};

// In force while it lives; one for each system call at a time.
class ScopedFault {
 public:
  ScopedFault(Syscall call, const FaultPlan& plan);
  ~ScopedFault();
  ScopedFault(const ScopedFault&) = delete;
  ScopedFault& operator=(const ScopedFault&) = delete;

  int hits() const;  // calls that failed or waited

 private:
  Syscall call_;
};

}  // namespace vitrove::testing
