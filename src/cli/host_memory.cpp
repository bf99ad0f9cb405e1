#include "cli/host_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace vitrove::cli {
namespace {

// Bytes of a line such as "MemTotal:   16384 kB".
std::optional<std::uint64_t> meminfo(const std::string& name) {
  std::ifstream in("/proc/meminfo");
  std::string word;
  while (in >> word) {
    std::uint64_t kibibytes = 0;
    if (word == name + ":" && in >> kibibytes) return kibibytes * 1024;
    in.ignore(256, '\n');
  }
  return std::nullopt;
}

// A container's limit: control groups of version 2, or else 1. Nothing for "max".
std::optional<std::uint64_t> container_limit() {
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::uint64_t bytes = 0;
    if (std::ifstream(path) >> bytes) return bytes;
  }
  return std::nullopt;
}

}  // namespace

std::optional<HostMemory> host_memory() {
  const auto total = meminfo("MemTotal");
  const auto available = meminfo("MemAvailable");
  if (!total || !available) return std::nullopt;
  const std::uint64_t most = std::min(*total, container_limit().value_or(*total));
  return HostMemory{most, std::min(*available, most)};
}

}  // namespace vitrove::cli
