#include "vitrove/memory_store.h"

#include <array>
#include <atomic>
#include <list>
#include <mutex>
#include <new>
#include <unordered_map>

#include "stores/batch.h"
#include "stores/builtin_backends.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

class Value {
 public:
  explicit Value(ConstBufferList buffers)
      : size_(total_bytes(buffers)), bytes_(std::make_unique_for_overwrite<std::byte[]>(size_)) {
    gather(buffers, bytes_.get());
  }
  ConstBuffer bytes() const { return {bytes_.get(), size_}; }

 private:
  std::uint64_t size_;
  std::unique_ptr<std::byte[]> bytes_;
};
using ValuePtr = std::shared_ptr<const Value>;

struct Entry {
  EmbeddingKey key;
  ValuePtr value;
  std::uint64_t tick = 0;  // of the last use; comparable between shards
  std::chrono::system_clock::time_point used_at;
};

// Entries in order of use, the most recent first. Not thread-safe by itself: `mutex` guards it.
struct Shard {
  std::mutex mutex;
  std::list<Entry> entries;
  std::unordered_map<EmbeddingKey, std::list<Entry>::iterator> index;

  Entry* find(const EmbeddingKey& key) {
    const auto found = index.find(key);
    return found == index.end() ? nullptr : &*found->second;
  }
  // What stands under the key becomes the most recent.
  void refresh(const EmbeddingKey& key, std::uint64_t tick) {
    const auto at = index.at(key);
    at->tick = tick;
    at->used_at = std::chrono::system_clock::now();
    entries.splice(entries.begin(), entries, at);
  }
  void insert(const EmbeddingKey& key, ValuePtr value, std::uint64_t tick) {
    std::list<Entry> fresh;  // so that a failing allocation leaves everything as it was
    fresh.push_front({key, std::move(value), tick, std::chrono::system_clock::now()});
    index.emplace(key, fresh.begin());
    entries.splice(entries.begin(), fresh);
  }
  ValuePtr erase(const EmbeddingKey& key) {
    const auto found = index.find(key);
    if (found == index.end()) return nullptr;
    ValuePtr value = std::move(found->second->value);
    entries.erase(found->second);
    index.erase(found);
    return value;
  }
};

// Who may encode what. Thread-safe.
class ClaimBook {
 public:
  using Clock = std::chrono::steady_clock;

  StoreResult claim(const EmbeddingKey& key, std::chrono::milliseconds ttl, ClaimToken& token) {
    const auto now = Clock::now();
    std::lock_guard lock(mutex_);
    std::erase_if(claims_, [&](const auto& claim) { return claim.second.ends <= now; });
    const auto [place, is_new] = claims_.try_emplace(key);
    if (!is_new) return {StoreStatus::conflict};
    place->second = {std::to_string(++last_token_), now + ttl};
    token.value = place->second.token;
    return {};
  }
  StoreResult renew(const EmbeddingKey& key, const ClaimToken& token,
                    std::chrono::milliseconds ttl) {
    std::lock_guard lock(mutex_);
    const auto held = find(key, token);
    if (held == claims_.end()) return {StoreStatus::conflict};
    held->second.ends = Clock::now() + ttl;
    return {};
  }
  StoreResult release(const EmbeddingKey& key, const ClaimToken& token) {
    std::lock_guard lock(mutex_);
    const auto held = find(key, token);
    if (held == claims_.end()) return {StoreStatus::conflict};
    claims_.erase(held);
    return {};
  }

 private:
  struct Held {
    std::string token;
    Clock::time_point ends;
  };
  using Claims = std::unordered_map<EmbeddingKey, Held>;

  // One that ran out is its holder's until somebody claims anew.
  Claims::iterator find(const EmbeddingKey& key, const ClaimToken& token) {
    const auto found = claims_.find(key);
    const bool is_his = found != claims_.end() && found->second.token == token.value;
    return is_his ? found : claims_.end();
  }

  std::mutex mutex_;
  std::uint64_t last_token_ = 0;
  Claims claims_;
};

class MemoryStore final : public EmbeddingStore {
 public:
  explicit MemoryStore(const MemoryStoreOptions& options) : capacity_(options.capacity) {}

  std::string_view name() const override { return "memory"; }

  StoreCapabilities capabilities() const override {
    StoreCapabilities all;
    all.can_remove = all.can_list = all.can_replace = all.can_claim = true;
    all.is_local = all.reports_pieces = true;
    all.max_value_bytes = std::min(all.max_value_bytes, capacity_);
    return all;
  }

  StoreHealth health() const override {
    StoreHealth health;
    health.bytes = used_.load();
    health.capacity = capacity_;
    health.entries = entries_.load();
    return health;
  }

  std::vector<StoreResult> batch_get_into_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const MutableBufferList> buffers,
                                                        const StoreContext& context) override {
    if (keys.size() != buffers.size()) return same_for_all(keys.size(), StoreStatus::invalid);
    return for_each_key(keys.size(), context, [&](std::size_t i) {
      return get(keys[i], buffers[i], i, context.observer);
    });
  }

  std::vector<StoreResult> batch_put_from_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const ConstBufferList> buffers,
                                                        PutMode mode,
                                                        const StoreContext& context) override {
    if (keys.size() != buffers.size()) return same_for_all(keys.size(), StoreStatus::invalid);
    return for_each_key(keys.size(), context,
                        [&](std::size_t i) { return put(keys[i], buffers[i], mode); });
  }

  std::vector<StoreResult> batch_is_exist(std::span<const EmbeddingKey> keys,
                                          const StoreContext& context) override {
    return for_each_key(keys.size(), context, [&](std::size_t i) -> StoreResult {
      const ValuePtr value = find(keys[i]);
      if (!value) return {StoreStatus::absent};
      return {StoreStatus::ok, value->bytes().size()};
    });
  }

  std::vector<StoreResult> batch_remove(std::span<const EmbeddingKey> keys,
                                        const StoreContext& context) override {
    return for_each_key(keys.size(), context, [&](std::size_t i) -> StoreResult {
      Shard& shard = shard_of(keys[i]);
      std::lock_guard lock(shard.mutex);
      const ValuePtr value = erase(shard, keys[i]);
      if (!value) return {StoreStatus::absent};
      return {StoreStatus::ok, value->bytes().size()};
    });
  }

  StoreResult list(const ListOptions& options, const std::function<bool(const ListedValue&)>& visit,
                   const StoreContext& context) override {
    for (Shard& shard : shards_) {
      for (const Entry& entry : copy_of(shard)) {
        if (const auto reason = stop_reason(context)) return {*reason};
        if (!visit(describe(entry, options))) return {};
      }
    }
    return {};
  }

  StoreResult claim(const EmbeddingKey& key, std::chrono::milliseconds ttl, ClaimToken& token,
                    const StoreContext& context) override {
    if (const auto reason = stop_reason(context)) return {*reason};
    return claims_.claim(key, ttl, token);
  }
  StoreResult renew(const EmbeddingKey& key, const ClaimToken& token, std::chrono::milliseconds ttl,
                    const StoreContext& context) override {
    if (const auto reason = stop_reason(context)) return {*reason};
    return claims_.renew(key, token, ttl);
  }
  StoreResult release(const EmbeddingKey& key, const ClaimToken& token, ClaimOutcome,
                      const StoreContext& context) override {
    if (const auto reason = stop_reason(context)) return {*reason};
    return claims_.release(key, token);
  }

 private:
  static constexpr std::size_t shard_count = 16;

  Shard& shard_of(const EmbeddingKey& key) {
    return shards_[std::to_integer<std::size_t>(key.digest.bytes.back()) % shard_count];
  }

  ValuePtr find(const EmbeddingKey& key) {
    Shard& shard = shard_of(key);
    std::lock_guard lock(shard.mutex);
    const Entry* entry = shard.find(key);
    return entry == nullptr ? nullptr : entry->value;
  }

  StoreResult get(const EmbeddingKey& key, MutableBufferList buffers, std::size_t key_index,
                  PieceObserver* observer) {
    const std::uint64_t room = total_bytes(buffers);
    if (room == 0) return {StoreStatus::invalid};
    const ValuePtr value = use(key);
    if (!value) return {StoreStatus::absent};
    const std::uint64_t size = value->bytes().size();
    if (size != room) return {StoreStatus::size_mismatch, size};
    scatter(value->bytes(), buffers, key_index, observer);
    return {StoreStatus::ok, size};
  }

  ValuePtr use(const EmbeddingKey& key) {
    Shard& shard = shard_of(key);
    std::lock_guard lock(shard.mutex);
    const Entry* entry = shard.find(key);
    if (entry == nullptr) return nullptr;
    shard.refresh(key, next_tick());
    return entry->value;
  }

  StoreResult put(const EmbeddingKey& key, ConstBufferList buffers, PutMode mode) {
    const std::uint64_t size = total_bytes(buffers);
    const StoreStatus checked = check_value_size(size, capabilities().max_value_bytes);
    if (checked != StoreStatus::ok) return {checked};
    if (mode == PutMode::if_absent) {
      if (const ValuePtr there = use(key)) return {StoreStatus::ok, there->bytes().size()};
    }
    try {
      insert(key, std::make_shared<const Value>(buffers), mode);
    } catch (const std::bad_alloc&) {
      return {StoreStatus::no_space, 0, ENOMEM};
    }
    while (used_.load() > capacity_) evict_oldest();
    return {StoreStatus::ok, size};
  }

  void insert(const EmbeddingKey& key, ValuePtr value, PutMode mode) {
    Shard& shard = shard_of(key);
    std::lock_guard lock(shard.mutex);
    if (mode == PutMode::if_absent && shard.find(key) != nullptr) return;  // somebody was faster
    erase(shard, key);
    const std::uint64_t size = value->bytes().size();
    shard.insert(key, std::move(value), next_tick());
    used_ += size;
    ++entries_;
  }

  ValuePtr erase(Shard& shard, const EmbeddingKey& key) {
    ValuePtr value = shard.erase(key);
    if (value) {
      used_ -= value->bytes().size();
      --entries_;
    }
    return value;
  }

  // The oldest of all is the oldest of some shard. Others may use or evict it meanwhile: then this
  // evicts nothing, and the caller looks again.
  void evict_oldest() {
    Shard* oldest = nullptr;
    std::uint64_t oldest_tick = 0;
    for (Shard& shard : shards_) {
      std::lock_guard lock(shard.mutex);
      if (shard.entries.empty()) continue;
      const std::uint64_t tick = shard.entries.back().tick;
      if (oldest != nullptr && tick >= oldest_tick) continue;
      oldest = &shard;
      oldest_tick = tick;
    }
    if (oldest == nullptr) return;
    ValuePtr freed;  // after the lock is gone
    std::lock_guard lock(oldest->mutex);
    if (used_.load() <= capacity_ || oldest->entries.empty()) return;
    const Entry& last = oldest->entries.back();
    if (last.tick == oldest_tick) freed = erase(*oldest, EmbeddingKey(last.key));
  }

  // Visiting happens without the lock: the visitor may call the store.
  static std::vector<Entry> copy_of(Shard& shard) {
    std::lock_guard lock(shard.mutex);
    return {shard.entries.begin(), shard.entries.end()};
  }

  static ListedValue describe(const Entry& entry, const ListOptions& options) {
    ListedValue listed;
    listed.key = entry.key;
    listed.size = entry.value->bytes().size();
    listed.last_used = entry.used_at;
    if (options.with_header && listed.size >= value_header_size) {
      std::memcpy(listed.header.emplace().data(), entry.value->bytes().data(), value_header_size);
    }
    return listed;
  }

  std::uint64_t next_tick() { return tick_.fetch_add(1, std::memory_order_relaxed); }

  const std::uint64_t capacity_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> entries_{0};
  std::atomic<std::uint64_t> tick_{1};
  std::array<Shard, shard_count> shards_;
  ClaimBook claims_;
};

}  // namespace

std::unique_ptr<EmbeddingStore> create_memory_store(const StoreUrl& url, StoreOptions& options) {
  if (!url.host.empty() || !url.path.empty()) {
    throw Error(ErrorCode::invalid_argument, "memory store: takes no host and no path");
  }
  const MemoryStoreOptions defaults;
  const MemoryStoreOptions chosen{.capacity = options.bytes("capacity", defaults.capacity)};
  options.reject_unknown();
  return make_memory_store(chosen);
}

std::unique_ptr<EmbeddingStore> make_memory_store(const MemoryStoreOptions& options) {
  if (options.capacity == 0) {
    throw Error(ErrorCode::invalid_argument, "memory store: capacity must be more than zero");
  }
  return std::make_unique<MemoryStore>(options);
}

}  // namespace vitrove
