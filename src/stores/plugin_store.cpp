// The host's side of the plugin interface: an EmbeddingStore over a table of C functions. Nothing
// that a plugin answers is believed without a look: results start as io_error, statuses out of
// range become io_error, and texts are cut at their buffers' ends.
#include <array>
#include <cstring>
#include <exception>

#include "stores/batch.h"
#include "stores/plugin_library.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

static_assert(sizeof(vitrove_key) == sizeof(Digest256));

// What a plugin's callbacks lead back to.
struct CallCookie {
  const StoreContext& context;
};

int is_cancelled(void* cookie) {
  return static_cast<CallCookie*>(cookie)->context.cancel.stop_requested() ? 1 : 0;
}

void on_piece(void* cookie, std::size_t key_index, std::uint64_t offset, const void* piece,
              std::uint64_t size) {
  const StoreContext& context = static_cast<CallCookie*>(cookie)->context;
  context.observer->on_piece(key_index, offset, {static_cast<const std::byte*>(piece), size});
}

// A context in the plugin's terms, for the length of one call.
class CallContext {
 public:
  explicit CallContext(const StoreContext& context)
      : trace_id_(context.trace_id), cookie_{context} {
    raw_.struct_size = sizeof raw_;
    raw_.deadline_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(context.deadline.time_since_epoch())
            .count();
    raw_.is_cancelled = is_cancelled;
    raw_.cookie = &cookie_;
    raw_.trace_id = trace_id_.c_str();
    raw_.on_piece = context.observer == nullptr ? nullptr : on_piece;
  }
  CallContext(const CallContext&) = delete;
  CallContext& operator=(const CallContext&) = delete;
  const vitrove_context* get() const { return &raw_; }

 private:
  std::string trace_id_;
  CallCookie cookie_;
  vitrove_context raw_{};
};

vitrove_key to_raw(const EmbeddingKey& key) {
  vitrove_key raw;
  std::memcpy(raw.digest, key.digest.bytes.data(), sizeof raw.digest);
  return raw;
}

EmbeddingKey from_raw(const vitrove_key& raw) {
  EmbeddingKey key;
  std::memcpy(key.digest.bytes.data(), raw.digest, sizeof raw.digest);
  return key;
}

std::vector<vitrove_key> to_raw(std::span<const EmbeddingKey> keys) {
  std::vector<vitrove_key> raw;
  raw.reserve(keys.size());
  for (const EmbeddingKey& key : keys) raw.push_back(to_raw(key));
  return raw;
}

// Buffer lists in the plugin's terms; the lists point into one array of buffers.
class RawLists {
 public:
  template <typename Buffer>
  explicit RawLists(std::span<const std::span<const Buffer>> lists) {
    std::size_t count = 0;
    for (const auto& list : lists) count += list.size();
    buffers_.reserve(count);  // so that the pointers below stay
    for (const auto& list : lists) {
      lists_.push_back({buffers_.data() + buffers_.size(), list.size()});
      for (const Buffer& buffer : list) {
        // One struct serves both directions; a put does not write through it.
        buffers_.push_back({const_cast<std::byte*>(buffer.data()), buffer.size()});
      }
    }
  }
  const vitrove_buffer_list* data() const { return lists_.data(); }

 private:
  std::vector<vitrove_buffer> buffers_;
  std::vector<vitrove_buffer_list> lists_;
};

StoreResult from_raw(const vitrove_result& raw) {
  const bool known = raw.status >= 0 && raw.status <= static_cast<int>(StoreStatus::conflict);
  const StoreStatus status = known ? static_cast<StoreStatus>(raw.status) : StoreStatus::io_error;
  return {status, raw.size, raw.error_number};
}

class RawResults {
 public:
  explicit RawResults(std::size_t count)
      : raw_(count, vitrove_result{static_cast<int>(StoreStatus::io_error), 0, 0}) {}
  vitrove_result* data() { return raw_.data(); }
  std::vector<StoreResult> take() const {
    std::vector<StoreResult> results;
    results.reserve(raw_.size());
    for (const vitrove_result& one : raw_) results.push_back(from_raw(one));
    return results;
  }

 private:
  std::vector<vitrove_result> raw_;
};

template <std::size_t size>
std::string cut_text(const char (&text)[size]) {
  return std::string(text, ::strnlen(text, size));
}

// A visitor that a C function can call; what it throws waits until the plugin has returned.
struct Visitor {
  const std::function<bool(const ListedValue&)>& visit;
  std::exception_ptr thrown;

  static int call(void* cookie, const vitrove_listed* theirs) {
    auto& self = *static_cast<Visitor*>(cookie);
    vitrove_listed raw{};
    std::memcpy(&raw, theirs, std::min(theirs->struct_size, sizeof raw));
    ListedValue value;
    value.key = from_raw(raw.key);
    value.size = raw.size;
    value.last_used =
        std::chrono::system_clock::time_point(std::chrono::microseconds(raw.last_used_us));
    if (raw.header != nullptr) {
      std::memcpy(value.header.emplace().data(), raw.header, value_header_size);
    }
    try {
      return self.visit(value) ? 1 : 0;
    } catch (...) {
      self.thrown = std::current_exception();
      return 0;
    }
  }
};

class PluginStore final : public EmbeddingStore {
 public:
  PluginStore(std::shared_ptr<const PluginLibrary> library, vitrove_store* store)
      : library_(std::move(library)), store_(store), name_(table().name) {}
  ~PluginStore() override { table().destroy(store_); }
  PluginStore(const PluginStore&) = delete;
  PluginStore& operator=(const PluginStore&) = delete;

  std::string_view name() const override { return name_; }

  std::vector<StoreResult> batch_get_into_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const MutableBufferList> buffers,
                                                        const StoreContext& context) override {
    if (keys.size() != buffers.size()) return same_for_all(keys.size(), StoreStatus::invalid);
    const auto raw_keys = to_raw(keys);
    const RawLists lists(buffers);
    RawResults results(keys.size());
    table().batch_get(store_, raw_keys.data(), lists.data(), keys.size(),
                      CallContext(context).get(), results.data());
    return results.take();
  }

  std::vector<StoreResult> batch_put_from_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const ConstBufferList> buffers,
                                                        PutMode mode,
                                                        const StoreContext& context) override {
    if (keys.size() != buffers.size()) return same_for_all(keys.size(), StoreStatus::invalid);
    const auto raw_keys = to_raw(keys);
    const RawLists lists(buffers);
    RawResults results(keys.size());
    table().batch_put(store_, raw_keys.data(), lists.data(), keys.size(),
                      mode == PutMode::replace ? 1 : 0, CallContext(context).get(), results.data());
    return results.take();
  }

  std::vector<StoreResult> batch_is_exist(std::span<const EmbeddingKey> keys,
                                          const StoreContext& context) override {
    const auto raw_keys = to_raw(keys);
    RawResults results(keys.size());
    table().batch_is_exist(store_, raw_keys.data(), keys.size(), CallContext(context).get(),
                           results.data());
    return results.take();
  }

  void register_buffer(MutableBuffer arena) override {
    if (table().register_buffer == nullptr) return;
    table().register_buffer(store_, arena.data(), arena.size());
  }
  void unregister_buffer(MutableBuffer arena) override {
    if (table().unregister_buffer == nullptr) return;
    table().unregister_buffer(store_, arena.data(), arena.size());
  }

  StoreCapabilities capabilities() const override {
    vitrove_capabilities raw{};
    raw.struct_size = sizeof raw;
    table().capabilities(store_, &raw);
    StoreCapabilities all;
    all.can_remove = raw.can_remove != 0 && table().batch_remove != nullptr;
    all.can_list = raw.can_list != 0 && table().list != nullptr;
    all.can_claim = raw.can_claim != 0 && table().claim != nullptr && table().renew != nullptr &&
                    table().release != nullptr;
    all.can_replace = raw.can_replace != 0;
    all.is_local = raw.is_local != 0;
    all.reports_pieces = raw.reports_pieces != 0;
    if (raw.max_value_bytes != 0) all.max_value_bytes = raw.max_value_bytes;
    return all;
  }

  StoreHealth health() const override {
    vitrove_health raw{};
    raw.struct_size = sizeof raw;
    table().health(store_, &raw);
    StoreHealth health;
    const bool known = raw.state >= 0 && raw.state <= static_cast<int>(StoreState::down);
    health.state = known ? static_cast<StoreState>(raw.state) : StoreState::degraded;
    health.detail = cut_text(raw.detail);
    if (raw.has_bytes != 0) health.bytes = raw.bytes;
    if (raw.has_capacity != 0) health.capacity = raw.capacity;
    if (raw.has_entries != 0) health.entries = raw.entries;
    return health;
  }

  std::vector<StoreResult> batch_remove(std::span<const EmbeddingKey> keys,
                                        const StoreContext& context) override {
    if (table().batch_remove == nullptr) return EmbeddingStore::batch_remove(keys, context);
    const auto raw_keys = to_raw(keys);
    RawResults results(keys.size());
    table().batch_remove(store_, raw_keys.data(), keys.size(), CallContext(context).get(),
                         results.data());
    return results.take();
  }

  StoreResult list(const ListOptions& options, const std::function<bool(const ListedValue&)>& visit,
                   const StoreContext& context) override {
    if (table().list == nullptr) return {StoreStatus::unsupported};
    Visitor visitor{visit, nullptr};
    const vitrove_result raw = table().list(store_, options.with_header ? 1 : 0, Visitor::call,
                                            &visitor, CallContext(context).get());
    if (visitor.thrown) std::rethrow_exception(visitor.thrown);
    return from_raw(raw);
  }

  StoreResult claim(const EmbeddingKey& key, std::chrono::milliseconds ttl, ClaimToken& token,
                    const StoreContext& context) override {
    if (table().claim == nullptr) return {StoreStatus::unsupported};
    const vitrove_key raw_key = to_raw(key);
    char text[64] = {};
    const vitrove_result raw =
        table().claim(store_, &raw_key, ttl.count(), text, CallContext(context).get());
    token.value = cut_text(text);
    return from_raw(raw);
  }

  StoreResult renew(const EmbeddingKey& key, const ClaimToken& token, std::chrono::milliseconds ttl,
                    const StoreContext& context) override {
    if (table().renew == nullptr) return {StoreStatus::unsupported};
    const vitrove_key raw_key = to_raw(key);
    return from_raw(table().renew(store_, &raw_key, token.value.c_str(), ttl.count(),
                                  CallContext(context).get()));
  }

  StoreResult release(const EmbeddingKey& key, const ClaimToken& token, ClaimOutcome outcome,
                      const StoreContext& context) override {
    if (table().release == nullptr) return {StoreStatus::unsupported};
    const vitrove_key raw_key = to_raw(key);
    return from_raw(table().release(store_, &raw_key, token.value.c_str(),
                                    outcome == ClaimOutcome::stored ? 1 : 0,
                                    CallContext(context).get()));
  }

 private:
  const vitrove_store_plugin& table() const { return library_->table(); }

  std::shared_ptr<const PluginLibrary> library_;
  vitrove_store* store_;
  std::string name_;
};

// Refuses options that the plugin does not name.
void check_options(const vitrove_store_plugin& table, const StoreUrl& url) {
  StoreOptions options(url.options);
  for (const vitrove_option* known = table.options; known != nullptr && known->name != nullptr;
       ++known) {
    options.text(known->name, "");
  }
  options.reject_unknown();
}

}  // namespace

std::unique_ptr<EmbeddingStore> create_plugin_store(std::shared_ptr<const PluginLibrary> library,
                                                    const StoreUrl& url) {
  const vitrove_store_plugin& table = library->table();
  check_options(table, url);
  std::vector<vitrove_option> options;
  options.reserve(url.options.size());
  for (const auto& [name, value] : url.options) options.push_back({name.c_str(), value.c_str()});
  vitrove_store* store = nullptr;
  char error[512] = {};
  const int status =
      table.create(url.text().c_str(), options.data(), options.size(), &store, error, sizeof error);
  if (status != 0 || store == nullptr) {
    throw Error(ErrorCode::invalid_argument,
                "store '" + std::string(table.name) + "' could not be created", cut_text(error));
  }
  return std::make_unique<PluginStore>(std::move(library), store);
}

}  // namespace vitrove
