#include "pool/arena.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "pool/numa.h"
#include "vitrove/error.h"
#include "vitrove/units.h"

namespace vitrove {
namespace {

constexpr std::uint64_t huge_page_bytes = std::uint64_t{2} << 20;
constexpr const char* shmem_switch = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

std::uint64_t small_page_bytes() { return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)); }

std::string reason(int error) { return std::generic_category().message(error); }

std::string read_text(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string locked_memory_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : format_bytes(limit.rlim_cur);
}

}  // namespace

std::string chosen_option(const std::string& text) {
  const auto open = text.find('[');
  const auto close = text.find(']', open);
  if (open == std::string::npos || close == std::string::npos) return {};
  return text.substr(open + 1, close - open - 1);
}

Arena::Arena(const ArenaOptions& options) : bytes_(options.bytes) {
  if (options.huge_pages) map_with_huge_pages();
  if (data_ == nullptr && !map(small_page_bytes(), 0)) {
    const int error = errno;
    throw Error(ErrorCode::unavailable, "no memory for a pool of " + format_bytes(bytes_),
                reason(error));
  }
  seal();
  if (options.numa_node) place(*options.numa_node);  // before anything is committed
  if (options.pin_memory) {
    lock();
    register_with_cuda(options.cuda_library);
  }
}

Arena::~Arena() {
  cuda_ = {};  // before the memory goes
  unmap();
}

// Leaves errno and nothing else behind when it fails.
bool Arena::map(std::uint64_t unit, unsigned int memfd_flags) {
  // An empty arena still has an address and a file, so that nobody needs a special case.
  const std::uint64_t wanted = std::max<std::uint64_t>(bytes_, 1);
  mapped_ = (wanted + unit - 1) / unit * unit;
  memfd_ = memfd_create("vitrove-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING | memfd_flags);
  if (memfd_ < 0) return false;
  void* address = MAP_FAILED;
  if (ftruncate(memfd_, static_cast<off_t>(mapped_)) == 0) {
    address = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_, 0);
  }
  if (address == MAP_FAILED) {
    const int error = errno;
    unmap();
    errno = error;
    return false;
  }
  data_ = static_cast<std::byte*>(address);
  return true;
}

void Arena::unmap() {
  if (data_ != nullptr) munmap(data_, mapped_);
  if (memfd_ >= 0) close(memfd_);
  data_ = nullptr;
  memfd_ = -1;
}

// A memfd is shared memory: for that, transparent huge pages have a switch of their own, and it is
// off on most hosts. Where it is off, huge pages that the operator has set aside (hugetlb) do.
void Arena::map_with_huge_pages() {
  const std::string shmem = chosen_option(read_text(shmem_switch));
  const bool transparent = !shmem.empty() && shmem != "never" && shmem != "deny";
  if (!transparent) {
    if (map(huge_page_bytes, MFD_HUGETLB | MFD_HUGE_2MB)) return;
    warnings_.push_back("huge pages are off: transparent huge pages for shared memory are \"" +
                        (shmem.empty() ? std::string("unavailable") : shmem) + "\" (set " +
                        shmem_switch + " to advise), and hugetlb pages are not to be had either (" +
                        reason(errno) + "; set vm.nr_hugepages)");
    return;
  }
  if (!map(huge_page_bytes, 0)) return;  // the caller tries again with small pages
  if (madvise(data_, mapped_, MADV_HUGEPAGE) == 0) return;
  warnings_.push_back("huge pages are off: the kernel refused the advice (" + reason(errno) + ")");
}

void Arena::seal() {
  if (fcntl(memfd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) return;
  warnings_.push_back("the pool's memory file could not be sealed against resizing (" +
                      reason(errno) + ")");
}

void Arena::place(std::uint32_t numa_node) {
  if (const auto reason = prefer_numa_node({data_, mapped_}, numa_node)) {
    warnings_.push_back("the pool lies where the kernel puts it, not on NUMA node " +
                        std::to_string(numa_node) + ": " + *reason);
  }
}

// Where it works the driver has pinned the memory too, whatever the limit of locked memory is.
void Arena::register_with_cuda(const std::string& library) {
  cuda_ = CudaRegistration({data_, mapped_}, library);
  if (cuda_.is_registered()) {
    notes_.push_back("the pool is registered with CUDA");
  } else if (cuda_.is_absent()) {
    notes_.push_back("the pool is not registered with CUDA: " + cuda_.reason());
  } else {
    warnings_.push_back("the pool is not registered with CUDA: " + cuda_.reason());
  }
}

void Arena::lock() {
  if (mlock(data_, mapped_) == 0) return;
  const int error = errno;
  munlock(data_, mapped_);  // a failed lock may have locked a part
  warnings_.push_back("memory is not locked: " + reason(error) + " for " + format_bytes(mapped_) +
                      "; the limit RLIMIT_MEMLOCK is " + locked_memory_limit() +
                      " (raise it with ulimit -l, LimitMEMLOCK= or --ulimit memlock, or grant "
                      "CAP_IPC_LOCK)");
}

}  // namespace vitrove
