// SmallVector: a vector of small plain values that needs no heap for the first `inline_count`.
//
// An allocation from the pool is one run in the common case; a heap block for it would double the
// cost of the allocation and add a cache miss to each later look at it.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

namespace vitrove {

template <class T, std::size_t inline_count>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() = default;
  SmallVector(std::initializer_list<T> values) {
    for (const T& value : values) push_back(value);
  }
  SmallVector(const SmallVector&) = default;
  SmallVector& operator=(const SmallVector&) = default;
  // Leaves `other` empty, as std::vector does.
  SmallVector(SmallVector&& other) noexcept
      : inline_(other.inline_),
        inline_size_(std::exchange(other.inline_size_, 0)),
        heap_(std::move(other.heap_)) {
    other.heap_.clear();
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this == &other) return *this;
    inline_ = other.inline_;
    inline_size_ = std::exchange(other.inline_size_, 0);
    heap_ = std::move(other.heap_);
    other.heap_.clear();
    return *this;
  }
  ~SmallVector() = default;

  std::size_t size() const { return heap_.empty() ? inline_size_ : heap_.size(); }
  bool empty() const { return size() == 0; }
  T* data() { return heap_.empty() ? inline_.data() : heap_.data(); }
  const T* data() const { return heap_.empty() ? inline_.data() : heap_.data(); }

  T* begin() { return data(); }
  T* end() { return data() + size(); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  T& operator[](std::size_t index) { return data()[index]; }
  const T& operator[](std::size_t index) const { return data()[index]; }
  T& front() { return *data(); }
  const T& front() const { return *data(); }
  T& back() { return data()[size() - 1]; }
  const T& back() const { return data()[size() - 1]; }

  void reserve(std::size_t count) {
    if (count > inline_count) heap_.reserve(count);
  }
  void clear() {
    inline_size_ = 0;
    heap_.clear();
  }

  void push_back(const T& value) {
    if (heap_.empty() && inline_size_ < inline_count) {
      inline_[inline_size_++] = value;
      return;
    }
    const T kept = value;  // `value` may be one of our own
    if (heap_.empty()) heap_.assign(inline_.begin(), inline_.end());
    inline_size_ = 0;
    heap_.push_back(kept);
  }

  void pop_back() {
    if (heap_.empty()) {
      --inline_size_;
    } else {
      heap_.pop_back();
    }
  }

  bool operator==(const SmallVector& other) const {
    if (size() != other.size()) return false;
    for (std::size_t i = 0; i < size(); ++i) {
      if (!(data()[i] == other.data()[i])) return false;
    }
    return true;
  }

 private:
  // Either all values are inline and the heap is empty, or all are on the heap.
  std::array<T, inline_count> inline_{};
  std::size_t inline_size_ = 0;
  std::vector<T> heap_;
};

}  // namespace vitrove
