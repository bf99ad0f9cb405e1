// How much memory there is for this process, for doctor.
#pragma once

#include <cstdint>
#include <optional>

namespace vitrove::cli {

struct HostMemory {
  std::uint64_t total = 0;      // of the machine, or what its container may use if that is less
  std::uint64_t available = 0;  // without pushing others out
};

// Nothing where the system does not tell.
std::optional<HostMemory> host_memory();

}  // namespace vitrove::cli
