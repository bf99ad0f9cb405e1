#include "stores/mooncake/staging.h"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/stoppable_wait.h"
#include "vitrove/error.h"

namespace vitrove::mooncake {
namespace {

// Blocks begin where a cache line and Mooncake's own alignment do.
constexpr std::uint64_t alignment = 64;

// From here on a block that comes back is worth a system call that gives its pages back too.
constexpr std::uint64_t worth_returning = std::uint64_t{8} << 20;
constexpr std::uint64_t page = 4096;

std::uint64_t rounded_up(std::uint64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

StagingMemory::StagingMemory(std::uint64_t bytes)
    : bytes_(rounded_up(bytes)),
      memfd_(::memfd_create("vitrove-mooncake", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  void* address = MAP_FAILED;
  if (memfd_ && ::ftruncate(memfd_.get(), static_cast<off_t>(bytes_)) == 0) {
    address = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_.get(), 0);
  }
  if (address == MAP_FAILED) {
    const int error = errno;
    throw Error(ErrorCode::unavailable, "mooncake store: no memory for its staging area",
                errno_text(error));
  }
  data_ = static_cast<std::byte*>(address);
  // A helper gone wild must not be able to cut the file short under us.
  ::fcntl(memfd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  free_.emplace(0, bytes_);
}

StagingMemory::~StagingMemory() { ::munmap(data_, bytes_); }

std::span<std::byte> StagingMemory::Block::bytes() const {
  if (memory_ == nullptr) return {};
  return {memory_->data_ + offset_, bytes_};
}

std::optional<StagingMemory::Block> StagingMemory::take(std::uint64_t bytes,
                                                        Clock::time_point deadline,
                                                        const std::stop_token& cancel) {
  if (bytes == 0 || bytes > bytes_) return std::nullopt;
  std::unique_lock lock(mutex_);
  std::optional<std::uint64_t> offset;
  const auto found = [&] { return (offset = find_room(rounded_up(bytes))).has_value(); };
  if (!wait_until(changed_, lock, cancel, deadline, found)) return std::nullopt;
  Block block;
  block.memory_ = this;
  block.offset_ = *offset;
  block.bytes_ = bytes;
  return block;
}

std::optional<std::uint64_t> StagingMemory::find_room(std::uint64_t bytes) {
  const auto room =
      std::ranges::find_if(free_, [&](const auto& hole) { return hole.second >= bytes; });
  if (room == free_.end()) return std::nullopt;
  const auto [offset, length] = *room;
  free_.erase(room);
  if (length > bytes) free_.emplace(offset + bytes, length - bytes);
  return offset;
}

void StagingMemory::give_back(std::uint64_t offset, std::uint64_t bytes) {
  std::uint64_t length = rounded_up(bytes);
  if (length >= worth_returning) {
    const std::uint64_t first = (offset + page - 1) / page * page;
    const std::uint64_t last = (offset + length) / page * page;
    ::fallocate(memfd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
                static_cast<off_t>(last - first));
  }
  {
    std::lock_guard lock(mutex_);
    auto next = free_.lower_bound(offset);
    if (next != free_.end() && offset + length == next->first) {
      length += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == offset) {
      std::prev(next)->second += length;
    } else {
      free_.emplace(offset, length);
    }
  }
  changed_.notify_all();
}

std::uint64_t StagingMemory::in_use() const {
  std::lock_guard lock(mutex_);
  std::uint64_t unused = 0;
  for (const auto& [offset, length] : free_) unused += length;
  return bytes_ - unused;
}

}  // namespace vitrove::mooncake
