#include "pool/numa.h"

#include <array>
#include <cerrno>
#include <climits>
#include <system_error>

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace vitrove {

std::optional<std::string> prefer_numa_node(std::span<std::byte> memory, std::uint32_t node) {
  constexpr std::size_t word_bits = sizeof(unsigned long) * CHAR_BIT;
  constexpr std::size_t most_nodes = 1024;  // the largest CONFIG_NODES_SHIFT there is
  if (node >= most_nodes) return "there is no such node";
  std::array<unsigned long, most_nodes / word_bits> mask{};
  mask[node / word_bits] = 1UL << (node % word_bits);
  // The kernel reads one bit less than it is told.
  if (syscall(SYS_mbind, memory.data(), memory.size(), MPOL_PREFERRED, mask.data(), most_nodes + 1,
              0U) == 0) {
    return std::nullopt;
  }
  const int error = errno;
  if (error == EINVAL) return "there is no such node";
  if (error == ENOSYS) return "this kernel knows no NUMA";
  return std::generic_category().message(error);
}

}  // namespace vitrove
