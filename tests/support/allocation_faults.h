// Memory that runs out for one thread, as if the machine had none: `new` on it throws. For programs
// that are linked with allocation_faults.cpp.
#pragma once

namespace vitrove::test {

// Every one of them.
void fail_allocations_of_this_thread(bool fail);

// One, counted from 1 and from now on, while it lives. One at a time.
class AllocationFault {
 public:
  explicit AllocationFault(int which);
  ~AllocationFault();
  AllocationFault(const AllocationFault&) = delete;
  AllocationFault& operator=(const AllocationFault&) = delete;

  bool happened() const;
};

}  // namespace vitrove::test
