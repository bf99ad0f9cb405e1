// A whole plugin: values on a shelf in this process's memory. shelf:?capacity=1GiB
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "vitrove/store_plugin_adapter.h"

namespace {

using vitrove::ConstBuffer;
using vitrove::ConstBufferList;
using vitrove::EmbeddingKey;
using vitrove::EmbeddingStore;
using vitrove::MutableBuffer;
using vitrove::MutableBufferList;
using vitrove::PutMode;
using vitrove::StoreCapabilities;
using vitrove::StoreContext;
using vitrove::StoreHealth;
using vitrove::StoreOptions;
using vitrove::StoreResult;
using vitrove::StoreStatus;
using vitrove::StoreUrl;

using Value = std::vector<std::byte>;

template <typename Buffer>
std::uint64_t total(std::span<const Buffer> buffers) {
  std::uint64_t bytes = 0;
  for (const Buffer& buffer : buffers) bytes += buffer.size();
  return bytes;
}

class ShelfStore final : public EmbeddingStore {
 public:
  explicit ShelfStore(std::uint64_t capacity) : capacity_(capacity) {}

  std::string_view name() const override { return "shelf"; }

  StoreCapabilities capabilities() const override {
    StoreCapabilities all;
    all.can_remove = all.can_replace = all.is_local = true;
    all.max_value_bytes = capacity_;
    return all;
  }

  StoreHealth health() const override {
    const std::lock_guard lock(mutex_);
    StoreHealth health;
    health.bytes = used_;
    health.capacity = capacity_;
    health.entries = values_.size();
    return health;
  }

  std::vector<StoreResult> batch_get_into_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const MutableBufferList> buffers,
                                                        const StoreContext& context) override {
    if (keys.size() != buffers.size()) return each(keys.size(), StoreStatus::invalid);
    return for_each(keys, context, [&](std::size_t i) { return get(keys[i], buffers[i]); });
  }

  std::vector<StoreResult> batch_put_from_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const ConstBufferList> buffers,
                                                        PutMode mode,
                                                        const StoreContext& context) override {
    if (keys.size() != buffers.size()) return each(keys.size(), StoreStatus::invalid);
    return for_each(keys, context, [&](std::size_t i) { return put(keys[i], buffers[i], mode); });
  }

  std::vector<StoreResult> batch_is_exist(std::span<const EmbeddingKey> keys,
                                          const StoreContext& context) override {
    return for_each(keys, context, [&](std::size_t i) {
      const auto value = find(keys[i]);
      return value ? StoreResult{StoreStatus::ok, value->size()} : StoreResult{StoreStatus::absent};
    });
  }

  std::vector<StoreResult> batch_remove(std::span<const EmbeddingKey> keys,
                                        const StoreContext& context) override {
    return for_each(keys, context, [&](std::size_t i) {
      const std::lock_guard lock(mutex_);
      const auto found = values_.find(keys[i]);
      if (found == values_.end()) return StoreResult{StoreStatus::absent};
      used_ -= found->second->size();
      values_.erase(found);
      return StoreResult{StoreStatus::ok};
    });
  }

 private:
  // Whoever reads a value keeps it: it may be replaced or removed meanwhile.
  using Shared = std::shared_ptr<const Value>;

  static std::vector<StoreResult> each(std::size_t count, StoreStatus status) {
    return std::vector<StoreResult>(count, StoreResult{status});
  }

  // One answer a key, in order; the rest says why when the caller has left or time is up.
  template <typename OneKey>
  static std::vector<StoreResult> for_each(std::span<const EmbeddingKey> keys,
                                           const StoreContext& context, OneKey one_key) {
    std::vector<StoreResult> results;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (context.cancel.stop_requested()) {
        results.push_back({StoreStatus::cancelled});
      } else if (context.overdue()) {
        results.push_back({StoreStatus::timeout});
      } else {
        results.push_back(one_key(i));
      }
    }
    return results;
  }

  Shared find(const EmbeddingKey& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : found->second;
  }

  StoreResult get(const EmbeddingKey& key, MutableBufferList buffers) const {
    const std::uint64_t room = total(buffers);
    if (room == 0) return {StoreStatus::invalid};
    const Shared value = find(key);
    if (!value) return {StoreStatus::absent};
    if (value->size() != room) return {StoreStatus::size_mismatch, value->size()};
    const std::byte* from = value->data();
    for (const MutableBuffer& buffer : buffers) {
      std::copy_n(from, buffer.size(), buffer.data());
      from += buffer.size();
    }
    return {StoreStatus::ok, room};
  }

  StoreResult put(const EmbeddingKey& key, ConstBufferList buffers, PutMode mode) {
    const std::uint64_t size = total(buffers);
    if (size == 0) return {StoreStatus::invalid};
    if (size > capacity_) return {StoreStatus::too_large, size};
    auto value = std::make_shared<Value>();
    value->reserve(size);
    for (const ConstBuffer& buffer : buffers)
      value->insert(value->end(), buffer.begin(), buffer.end());

    const std::lock_guard lock(mutex_);
    Shared& place = values_[key];
    const std::uint64_t before = place ? place->size() : 0;
    if (place && mode == PutMode::if_absent) return {StoreStatus::ok, before};
    if (used_ - before + size > capacity_) {
      if (!place) values_.erase(key);
      return {StoreStatus::no_space, size};
    }
    used_ += size - before;
    place = std::move(value);  // whole, or not at all
    return {StoreStatus::ok, size};
  }

  const std::uint64_t capacity_;
  mutable std::mutex mutex_;
  std::map<EmbeddingKey, Shared> values_;
  std::uint64_t used_ = 0;
};

std::unique_ptr<EmbeddingStore> create(const StoreUrl&, StoreOptions& options) {
  return std::make_unique<ShelfStore>(options.bytes("capacity", std::uint64_t{1} << 30));
}

// Every option that the creator reads; others are refused before it is called.
constexpr vitrove_option options[] = {{"capacity", "bytes to hold (1GiB)"}, {}};
constexpr auto table = vitrove::make_store_plugin<create>("shelf", "1.0", options);

}  // namespace

const vitrove_store_plugin* vitrove_store_plugin_v1() { return &table; }
