// ReplyBudget: how much of the pool replies on their way may pin (field cases B33, B69).
//
// Replies may pin at most half of the pool; what is beyond that is copied to the heap, so that slow
// readers cannot keep the cache from evicting; copies are bounded too, and what is beyond those is
// refused with 503. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "server/encode_service.h"

namespace vitrove {

// A sum that may not pass its bound.
class ByteAllowance {
 public:
  explicit ByteAllowance(std::uint64_t limit) : limit_(limit) {}

  bool take(std::uint64_t bytes);
  // For memory that is in use already: refused only when there was no room before it.
  bool take_existing(std::uint64_t bytes);
  void give_back(std::uint64_t bytes) { used_ -= bytes; }
  std::uint64_t used() const { return used_; }
  std::uint64_t limit() const { return limit_; }

  // Bytes taken, given back by the destructor. Movable.
  class Share {
   public:
    Share() = default;
    Share(ByteAllowance& from, std::uint64_t bytes) : from_(&from), bytes_(bytes) {}
    Share(Share&& other) noexcept
        : from_(std::exchange(other.from_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(from_, other.from_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (from_ != nullptr) from_->give_back(bytes_);
    }

    std::uint64_t bytes() const { return bytes_; }
    bool grow(std::uint64_t more) {
      if (!from_->take(more)) return false;
      bytes_ += more;
      return true;
    }

   private:
    ByteAllowance* from_ = nullptr;
    std::uint64_t bytes_ = 0;
  };

 private:
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
};

class ReplyBudget {
 public:
  ReplyBudget(std::uint64_t pool_bytes, std::uint64_t copied_bytes)
      : pinned_(pool_bytes / 2), copied_(copied_bytes) {}

  // Admits the views of one reply, detaching them when pins are short. Throws Error{unavailable}.
  // The shares go with the reply.
  std::vector<ByteAllowance::Share> admit(std::span<EmbeddingView* const> views);
  // Like admit(), but never copies: false when it would have to.
  bool admit_pinned(const EmbeddingView& view, ByteAllowance::Share& share);

  std::uint64_t pinned() const { return pinned_.used(); }
  std::uint64_t copied() const { return copied_.used(); }

 private:
  ByteAllowance pinned_;
  ByteAllowance copied_;
};

}  // namespace vitrove
