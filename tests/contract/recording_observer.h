// A piece observer that finds out whether a store keeps what PieceObserver promises.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "vitrove/embedding_store.h"

namespace vitrove::testing {

// Checks that pieces are contiguous, in order, and inside the buffers of their key.
class RecordingObserver final : public PieceObserver {
 public:
  explicit RecordingObserver(std::vector<MutableBufferList> buffers)
      : buffers_(std::move(buffers)), seen_(buffers_.size(), 0) {}

  void on_piece(std::size_t key_index, std::uint64_t offset, ConstBuffer piece) noexcept override {
    std::lock_guard lock(mutex_);
    if (key_index >= seen_.size() || piece.empty()) return complain();
    if (offset == 0) seen_[key_index] = 0;
    if (offset != seen_[key_index] || !lies_at(key_index, offset, piece)) return complain();
    seen_[key_index] += piece.size();
    if (on_first_piece) std::exchange(on_first_piece, nullptr)();
  }

  std::uint64_t seen(std::size_t key_index) const { return seen_.at(key_index); }
  int complaints() const { return complaints_; }

  std::function<void()> on_first_piece;

 private:
  void complain() { ++complaints_; }
  bool lies_at(std::size_t key_index, std::uint64_t offset, ConstBuffer piece) const {
    for (const MutableBuffer& buffer : buffers_[key_index]) {
      if (offset < buffer.size()) {
        return piece.data() == buffer.data() + offset && piece.size() <= buffer.size() - offset;
      }
      offset -= buffer.size();
    }
    return false;
  }

  std::vector<MutableBufferList> buffers_;
  std::mutex mutex_;
  std::vector<std::uint64_t> seen_;
  int complaints_ = 0;
};

}  // namespace vitrove::testing
