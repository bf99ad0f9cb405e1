// Arena: one shared mapping of one memfd, committed lazily.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pool/cuda_registration.h"

namespace vitrove {

struct ArenaOptions {
  std::uint64_t bytes = 0;
  bool huge_pages = false;
  bool pin_memory = false;
  std::optional<std::uint32_t> numa_node;
  std::string cuda_library;  // see PagePoolOptions
};

class Arena {
 public:
  // Throws Error{unavailable} when the memory is not to be had.
  explicit Arena(const ArenaOptions& options);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::span<std::byte> bytes() const { return {data_, bytes_}; }
  int memfd() const { return memfd_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  bool map(std::uint64_t unit, unsigned int memfd_flags);
  void unmap();
  void map_with_huge_pages();
  void seal();
  void place(std::uint32_t numa_node);
  void lock();
  void register_with_cuda(const std::string& library);

  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;   // as asked for
  std::uint64_t mapped_ = 0;  // rounded up to the unit of the mapping
  int memfd_ = -1;
  CudaRegistration cuda_;
  std::vector<std::string> warnings_;
  std::vector<std::string> notes_;
};

// What /sys/kernel/mm/transparent_hugepage/shmem_enabled has chosen ("[advise]" → "advise");
// empty when the text names nothing.
std::string chosen_option(const std::string& text);

}  // namespace vitrove
