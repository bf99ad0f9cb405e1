// Every store of a controller hears of its pool once, and before the pool goes.
#include "support.h"

namespace vitrove::testing {
namespace {

// What a store that transfers into registered memory sees: which memory, and in which order.
class RegisteredStore final : public EmbeddingStore {
 public:
  struct Facts {
    std::vector<std::pair<MutableBuffer, int>> registered;
    std::vector<MutableBuffer> unregistered;
    int calls = 0;
    int calls_outside = 0;  // before the one, or after the other
    int bytes_elsewhere = 0;
  };

  explicit RegisteredStore(std::shared_ptr<Facts> facts) : facts_(std::move(facts)) {}

  std::string_view name() const override { return "registered"; }
  StoreCapabilities capabilities() const override { return inner_->capabilities(); }
  StoreHealth health() const override { return inner_->health(); }

  void register_buffer(MutableBuffer) override { ADD_FAILURE() << "without its memfd"; }
  void register_shared_buffer(MutableBuffer arena, int memfd) override {
    const std::lock_guard lock(mutex_);
    facts_->registered.emplace_back(arena, memfd);
  }
  void unregister_buffer(MutableBuffer arena) override {
    const std::lock_guard lock(mutex_);
    facts_->unregistered.push_back(arena);
  }

  std::vector<StoreResult> batch_get_into_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const MutableBufferList> buffers,
                                                        const StoreContext& context) override {
    note(buffers);
    return inner_->batch_get_into_multi_buffers(keys, buffers, context);
  }
  std::vector<StoreResult> batch_put_from_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const ConstBufferList> buffers,
                                                        PutMode mode,
                                                        const StoreContext& context) override {
    note(buffers);
    return inner_->batch_put_from_multi_buffers(keys, buffers, mode, context);
  }
  std::vector<StoreResult> batch_is_exist(std::span<const EmbeddingKey> keys,
                                          const StoreContext& context) override {
    note(std::span<const ConstBufferList>());
    return inner_->batch_is_exist(keys, context);
  }

 private:
  template <typename List>
  void note(std::span<const List> values) {
    const std::lock_guard lock(mutex_);
    ++facts_->calls;
    if (facts_->registered.empty() || !facts_->unregistered.empty()) {
      ++facts_->calls_outside;
      return;
    }
    const MutableBuffer arena = facts_->registered.front().first;
    for (const List& value : values) {
      for (const auto& buffer : value) {
        const bool is_inside = buffer.data() >= arena.data() &&
                               buffer.data() + buffer.size() <= arena.data() + arena.size();
        if (!is_inside) facts_->bytes_elsewhere += static_cast<int>(buffer.size());
      }
    }
  }

  const std::shared_ptr<Facts> facts_;
  const std::unique_ptr<EmbeddingStore> inner_ = make_memory_store();
  std::mutex mutex_;
};

TEST(Registration, OfThePoolComesOnceBeforeTheFirstCallAndEndsOnceAfterTheLast) {
  std::vector<std::shared_ptr<RegisteredStore::Facts>> facts;
  std::vector<std::shared_ptr<EmbeddingStore>> stores;
  for (int tier = 0; tier < 2; ++tier) {
    facts.push_back(std::make_shared<RegisteredStore::Facts>());
    stores.push_back(std::make_shared<RegisteredStore>(facts.back()));
  }
  MutableBuffer arena;
  int memfd = -1;
  {
    EmbeddingCacheController controller(small_pool(8), stores);
    PagePool& pool = ControllerAccess::impl(controller).core->pool();
    arena = pool.arena();
    memfd = pool.memfd();
    for (int i = 0; i < 12; ++i) serve_one(controller, picture(i));
    settle(controller);
    serve_one(controller, picture(0));    // from the store: it was evicted
    serve_one(controller, picture(100));  // whose puts may be under way at the end
  }
  for (const auto& tier : facts) {
    ASSERT_EQ(tier->registered.size(), 1u);
    EXPECT_EQ(tier->registered[0].first.data(), arena.data());
    EXPECT_EQ(tier->registered[0].first.size(), arena.size());
    EXPECT_EQ(tier->registered[0].second, memfd);
    ASSERT_EQ(tier->unregistered.size(), 1u);
    EXPECT_EQ(tier->unregistered[0].data(), arena.data());
    EXPECT_EQ(tier->unregistered[0].size(), arena.size());
    EXPECT_GT(tier->calls, 12);
    EXPECT_EQ(tier->calls_outside, 0);
    EXPECT_EQ(tier->bytes_elsewhere, 0) << "each such byte is copied once more";
  }
}

}  // namespace
}  // namespace vitrove::testing
