// StagingMemory: a bounded shared memory file through which values pass that do not lie in the
// pool's arena, or that the helper's Mooncake cannot gather by itself. It costs one copy.
//
// Memory is committed as it is used, at most `bytes` of it. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>

#include "base/unique_fd.h"

namespace vitrove::mooncake {

class StagingMemory {
 public:
  using Clock = std::chrono::steady_clock;

  // Throws Error{unavailable} when the memory is not to be had.
  explicit StagingMemory(std::uint64_t bytes);
  ~StagingMemory();
  StagingMemory(const StagingMemory&) = delete;
  StagingMemory& operator=(const StagingMemory&) = delete;

  // A part of it, given back by its destructor. Must not outlive the memory.
  class Block {
   public:
    Block() = default;
    Block(Block&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)),
          offset_(other.offset_),
          bytes_(other.bytes_) {}
    Block& operator=(Block&& other) noexcept {
      std::swap(memory_, other.memory_);
      std::swap(offset_, other.offset_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Block() {
      if (memory_ != nullptr) memory_->give_back(offset_, bytes_);
    }
    std::uint64_t offset() const { return offset_; }
    std::span<std::byte> bytes() const;

   private:
    friend class StagingMemory;
    StagingMemory* memory_ = nullptr;
    std::uint64_t offset_ = 0;
    std::uint64_t bytes_ = 0;
  };

  // Waits for room; nothing when the deadline comes or the caller leaves first, or when it can
  // never be.
  std::optional<Block> take(std::uint64_t bytes, Clock::time_point deadline,
                            const std::stop_token& cancel);

  int memfd() const { return memfd_.get(); }
  std::uint64_t size() const { return bytes_; }
  std::uint64_t in_use() const;

 private:
  std::optional<std::uint64_t> find_room(std::uint64_t bytes);
  void give_back(std::uint64_t offset, std::uint64_t bytes);

  const std::uint64_t bytes_;
  UniqueFd memfd_;
  std::byte* data_ = nullptr;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::uint64_t, std::uint64_t> free_;  // offset to length; neighbours are joined
};

}  // namespace vitrove::mooncake
