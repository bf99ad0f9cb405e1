// A cache with an encoder, seen as a store, so that the contract suite can ask it for its promises
// while the store below it lies.
//
// A put teaches the encoder a key's value, puts it into the cache and empties the pool; so each get
// has to believe the store below, or have the value encoded anew. What it answers is what the cache
// showed, never the encoder's own copy. A byte of a value is one finite half in the cache, which
// takes no others.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "stores/batch.h"
#include "support.h"

namespace vitrove::testing {

class CacheAsStore final : public EmbeddingStore {
 public:
  CacheAsStore(const ControllerOptions& options, std::shared_ptr<EmbeddingStore> below)
      : controller_(options, {std::move(below)}) {}

  std::string_view name() const override { return "cache"; }
  StoreHealth health() const override { return {}; }
  StoreCapabilities capabilities() const override {
    StoreCapabilities all;
    all.max_value_bytes = std::uint64_t{256} << 20;
    return all;
  }
  EmbeddingCacheController& controller() { return controller_; }

  std::vector<StoreResult> batch_put_from_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const ConstBufferList> buffers,
                                                        PutMode,
                                                        const StoreContext& context) override {
    if (keys.size() != buffers.size()) return same_for_all(keys.size(), StoreStatus::invalid);
    auto results = for_each_key(keys.size(), context, [&](std::size_t i) {
      const std::uint64_t size = total_bytes(buffers[i]);
      const StoreStatus status = check_value_size(size, capabilities().max_value_bytes);
      if (status == StoreStatus::ok) teach(keys[i], buffers[i], size);
      return StoreResult{status, size};
    });
    show_all(keys, results);
    controller_.wait_for_puts(Clock::now() + patience);
    controller_.flush(FlushScope::local, std::nullopt, request());
    return results;
  }

  std::vector<StoreResult> batch_is_exist(std::span<const EmbeddingKey> keys,
                                          const StoreContext& context) override {
    return for_each_key(keys.size(), context, [&](std::size_t i) {
      const auto rows = encode(keys[i]);
      return rows ? StoreResult{StoreStatus::ok, rows->size()} : StoreResult{StoreStatus::absent};
    });
  }

  std::vector<StoreResult> batch_get_into_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const MutableBufferList> buffers,
                                                        const StoreContext& context) override {
    if (keys.size() != buffers.size()) return same_for_all(keys.size(), StoreStatus::invalid);
    auto results = for_each_key(keys.size(), context, [&](std::size_t i) {
      return what_fits(keys[i], total_bytes(buffers[i]));
    });
    const auto views = show_all(keys, results);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (views[i]) copy_out(views[i], buffers[i], i);
    }
    return results;
  }

 private:
  using Halves = std::vector<std::uint16_t>;  // as the encoder makes them
  static constexpr std::uint16_t one = 0x3C00;

  void teach(const EmbeddingKey& key, ConstBufferList buffers, std::uint64_t size) {
    Bytes value(size);
    gather(buffers, value.data());
    auto halves = std::make_shared<Halves>();
    halves->reserve(size);
    for (const std::byte byte : value) {
      halves->push_back(static_cast<std::uint16_t>(one | std::to_integer<std::uint16_t>(byte)));
    }
    const std::lock_guard lock(mutex_);
    known_.emplace(key, std::move(halves));  // what is there stays
  }

  std::shared_ptr<const Halves> encode(const EmbeddingKey& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(key);
    return found == known_.end() ? nullptr : found->second;
  }

  StoreResult what_fits(const EmbeddingKey& key, std::uint64_t room) const {
    if (room == 0) return {StoreStatus::invalid};
    const auto halves = encode(key);
    if (!halves) return {StoreStatus::absent};
    return {halves->size() == room ? StoreStatus::ok : StoreStatus::size_mismatch, halves->size()};
  }

  // The views of what is `ok`, as one request sees them.
  std::vector<EmbeddingView> show_all(std::span<const EmbeddingKey> keys,
                                      const std::vector<StoreResult>& results) {
    std::vector<ValueExpectation> items;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!results[i].ok()) continue;
      ValueExpectation item;
      item.key = keys[i];
      item.dtype = DType::float16;
      item.dim = 1;
      item.rows = static_cast<std::uint32_t>(encode(keys[i])->size());
      items.push_back(item);
      places.push_back(i);
    }
    std::vector<EmbeddingView> views(keys.size());
    auto answers = controller_.acquire(items, request());
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (auto* hit = std::get_if<Hit>(&answers[i])) views[places[i]] = std::move(hit->view);
      if (auto* fill = std::get_if<FillTicket>(&answers[i])) views[places[i]] = publish_one(*fill);
    }
    for (std::size_t i = 0; i < answers.size(); ++i) {
      auto* join = std::get_if<JoinTicket>(&answers[i]);
      if (join == nullptr) continue;
      auto outcome = join->wait(request());
      auto* fill = std::get_if<FillTicket>(&outcome);
      views[places[i]] =
          fill != nullptr ? publish_one(*fill) : std::move(std::get<EmbeddingView>(outcome));
    }
    return views;
  }

  EmbeddingView publish_one(FillTicket& ticket) {
    const auto halves = encode(ticket.key());
    return ticket.publish({std::as_bytes(std::span(*halves)),
                           static_cast<std::uint32_t>(halves->size()),
                           {},
                           std::chrono::microseconds(1)});
  }

  static void copy_out(const EmbeddingView& view, MutableBufferList buffers, std::size_t index) {
    Bytes value;
    value.reserve(view.rows());
    for (const auto& run : view.runs()) {
      for (std::size_t at = 0; at < run.size(); at += sizeof(std::uint16_t)) {
        value.push_back(run[at]);  // of a half's two bytes the lower one
      }
    }
    scatter(value, buffers, index, nullptr);
  }

  mutable std::mutex mutex_;
  std::map<EmbeddingKey, std::shared_ptr<const Halves>> known_;
  EmbeddingCacheController controller_;
};

}  // namespace vitrove::testing
