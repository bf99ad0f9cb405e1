// Turns a class derived from EmbeddingStore into the C table of store_plugin.h. A whole plugin:
//
//   #include "vitrove/store_plugin_adapter.h"
//
//   namespace {
//   std::unique_ptr<vitrove::EmbeddingStore> create(const vitrove::StoreUrl& url,
//                                                   vitrove::StoreOptions& options) {
//     return std::make_unique<MyStore>(url.host, options.integer("retries", 3));
//   }
//   constexpr vitrove_option options[] = {{"retries", "how often to try again (3)"}, {}};
//   constexpr auto table = vitrove::make_store_plugin<create>("mystore", "1.0", options);
//   }  // namespace
//
//   const vitrove_store_plugin* vitrove_store_plugin_v1() { return &table; }
//
// The creator is the same kind of function that a built-in backend registers, and the store is held
// to the same contract. What either throws becomes a message or `io_error`; nothing is thrown
// across. A claim's token has at most 63 characters; a longer one is an `io_error`. A host older or
// newer than the plugin is served as far as its structs reach.
//
// Header-only; a plugin links the library (vitrove::vitrove) for EmbeddingStore itself.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "vitrove/embedding_store.h"
#include "vitrove/embedding_store_factory.h"
#include "vitrove/error.h"
#include "vitrove/store_plugin.h"

namespace vitrove {

namespace plugin_adapter {

inline EmbeddingStore& store_of(vitrove_store* handle) {
  return *reinterpret_cast<EmbeddingStore*>(handle);
}

// Copies as much of `ours` as the host's struct holds, and leaves its struct_size alone.
template <typename Struct>
void fill(Struct* theirs, Struct ours) {
  const std::size_t size = theirs->struct_size;
  ours.struct_size = size;
  std::memcpy(theirs, &ours, std::min(size, sizeof ours));
}

inline EmbeddingKey key_of(const vitrove_key& raw) {
  EmbeddingKey key;
  std::memcpy(key.digest.bytes.data(), raw.digest, sizeof raw.digest);
  return key;
}

inline std::vector<EmbeddingKey> keys_of(const vitrove_key* raw, std::size_t count) {
  std::vector<EmbeddingKey> keys;
  keys.reserve(count);
  for (std::size_t i = 0; i < count; ++i) keys.push_back(key_of(raw[i]));
  return keys;
}

// The host's buffers as lists of spans.
template <typename Buffer>
class Lists {
 public:
  Lists(const vitrove_buffer_list* raw, std::size_t count) {
    std::size_t total = 0;
    for (std::size_t i = 0; i < count; ++i) total += raw[i].count;
    buffers_.reserve(total);  // so that the spans below stay
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t first = buffers_.size();
      for (std::size_t j = 0; j < raw[i].count; ++j) {
        const vitrove_buffer& buffer = raw[i].buffers[j];
        buffers_.push_back(Buffer(static_cast<std::byte*>(buffer.data), buffer.size));
      }
      lists_.emplace_back(buffers_.data() + first, raw[i].count);
    }
  }
  std::span<const std::span<const Buffer>> get() const { return lists_; }

 private:
  std::vector<Buffer> buffers_;
  std::vector<std::span<const Buffer>> lists_;
};

// The host's context as a StoreContext. The host can only be asked whether the caller has left, so
// it is asked when the call starts and at each piece that arrives.
class Call final : public PieceObserver {
 public:
  explicit Call(const vitrove_context* host) {
    std::memcpy(&host_, host, std::min(host->struct_size, sizeof host_));
    if (host_.deadline_ns != std::numeric_limits<std::int64_t>::max()) {
      context_.deadline =
          std::chrono::steady_clock::time_point(std::chrono::nanoseconds(host_.deadline_ns));
    }
    if (host_.trace_id != nullptr) context_.trace_id = host_.trace_id;
    if (host_.on_piece != nullptr) context_.observer = this;
    context_.cancel = cancel_.get_token();
    ask_whether_cancelled();
  }
  const StoreContext& context() const { return context_; }

  void on_piece(std::size_t key_index, std::uint64_t offset, ConstBuffer piece) noexcept override {
    host_.on_piece(host_.cookie, key_index, offset, piece.data(), piece.size());
    ask_whether_cancelled();
  }

 private:
  void ask_whether_cancelled() {
    if (host_.is_cancelled != nullptr && host_.is_cancelled(host_.cookie) != 0) {
      cancel_.request_stop();
    }
  }

  vitrove_context host_{};
  std::stop_source cancel_;
  StoreContext context_;
};

inline vitrove_result raw_of(const StoreResult& result) {
  return {static_cast<std::int32_t>(result.status), result.error_number, result.size};
}

// Runs `work`, which answers one result a key, and hands its results to the host.
template <typename Work>
void answer(std::size_t count, vitrove_result* results, Work work) noexcept {
  std::vector<StoreResult> answers;
  try {
    answers = work();
  } catch (...) {
    answers.clear();
  }
  for (std::size_t i = 0; i < count; ++i) {
    const bool answered = answers.size() == count;
    results[i] = raw_of(answered ? answers[i] : StoreResult{StoreStatus::io_error});
  }
}

template <typename Work>
vitrove_result answer_one(Work work) noexcept {
  try {
    return raw_of(work());
  } catch (...) {
    return raw_of({StoreStatus::io_error});
  }
}

using Creator = std::unique_ptr<EmbeddingStore> (*)(const StoreUrl&, StoreOptions&);

inline void set_text(char* target, std::size_t size, const char* text) {
  if (size > 0) std::snprintf(target, size, "%s", text);
}

template <Creator creator>
int create(const char* url_text, const vitrove_option* raw_options, std::size_t option_count,
           vitrove_store** out, char* error, std::size_t error_size) noexcept {
  try {
    StoreUrl url = StoreUrl::parse(url_text);
    for (std::size_t i = 0; i < option_count; ++i) {
      url.options.emplace(raw_options[i].name, raw_options[i].value);
    }
    StoreOptions options(url.options);
    std::unique_ptr<EmbeddingStore> store = creator(url, options);
    options.reject_unknown();
    *out = reinterpret_cast<vitrove_store*>(store.release());
    return *out == nullptr ? -1 : 0;
  } catch (const Error& refused) {
    const std::string& detail = refused.detail();
    const std::string text = refused.what() + (detail.empty() ? "" : ": " + detail);
    set_text(error, error_size, text.c_str());
  } catch (const std::exception& failure) {
    set_text(error, error_size, failure.what());
  } catch (...) {
    set_text(error, error_size, "something that is no std::exception was thrown");
  }
  return -1;
}

inline void destroy(vitrove_store* handle) noexcept { delete &store_of(handle); }

inline void batch_get(vitrove_store* handle, const vitrove_key* keys,
                      const vitrove_buffer_list* lists, std::size_t count,
                      const vitrove_context* context, vitrove_result* results) noexcept {
  answer(count, results, [&] {
    const Lists<MutableBuffer> buffers(lists, count);
    const Call call(context);
    return store_of(handle).batch_get_into_multi_buffers(keys_of(keys, count), buffers.get(),
                                                         call.context());
  });
}

inline void batch_put(vitrove_store* handle, const vitrove_key* keys,
                      const vitrove_buffer_list* lists, std::size_t count, int replace,
                      const vitrove_context* context, vitrove_result* results) noexcept {
  answer(count, results, [&] {
    const Lists<ConstBuffer> buffers(lists, count);
    const Call call(context);
    return store_of(handle).batch_put_from_multi_buffers(
        keys_of(keys, count), buffers.get(), replace != 0 ? PutMode::replace : PutMode::if_absent,
        call.context());
  });
}

inline void batch_is_exist(vitrove_store* handle, const vitrove_key* keys, std::size_t count,
                           const vitrove_context* context, vitrove_result* results) noexcept {
  answer(count, results, [&] {
    return store_of(handle).batch_is_exist(keys_of(keys, count), Call(context).context());
  });
}

inline void batch_remove(vitrove_store* handle, const vitrove_key* keys, std::size_t count,
                         const vitrove_context* context, vitrove_result* results) noexcept {
  answer(count, results, [&] {
    return store_of(handle).batch_remove(keys_of(keys, count), Call(context).context());
  });
}

inline void capabilities(vitrove_store* handle, vitrove_capabilities* out) noexcept {
  StoreCapabilities all;
  try {
    all = store_of(handle).capabilities();
  } catch (...) {
    all = {};  // a store that cannot even say what it can do: the least
  }
  fill(out, {.struct_size = sizeof(vitrove_capabilities),
             .can_remove = all.can_remove,
             .can_list = all.can_list,
             .can_claim = all.can_claim,
             .can_replace = all.can_replace,
             .is_local = all.is_local,
             .reports_pieces = all.reports_pieces,
             .max_value_bytes = all.max_value_bytes});
}

inline void health(vitrove_store* handle, vitrove_health* out) noexcept {
  vitrove_health raw{};
  try {
    const StoreHealth health = store_of(handle).health();
    raw.state = static_cast<std::int32_t>(health.state);
    raw.has_bytes = health.bytes.has_value();
    raw.has_capacity = health.capacity.has_value();
    raw.has_entries = health.entries.has_value();
    raw.bytes = health.bytes.value_or(0);
    raw.capacity = health.capacity.value_or(0);
    raw.entries = health.entries.value_or(0);
    set_text(raw.detail, sizeof raw.detail, health.detail.c_str());
  } catch (...) {
    raw.state = static_cast<std::int32_t>(StoreState::degraded);
    set_text(raw.detail, sizeof raw.detail, "health() threw");
  }
  fill(out, raw);
}

// Both are hints; the C functions have no way to say that one was not taken.
template <typename Work>
void try_to(Work work) noexcept {
  try {
    work();
  } catch (...) {
    return;
  }
}

inline void register_buffer(vitrove_store* handle, void* base, std::uint64_t size) noexcept {
  try_to([&] { store_of(handle).register_buffer({static_cast<std::byte*>(base), size}); });
}

inline void unregister_buffer(vitrove_store* handle, void* base, std::uint64_t size) noexcept {
  try_to([&] { store_of(handle).unregister_buffer({static_cast<std::byte*>(base), size}); });
}

constexpr std::size_t token_size = 64;  // the NUL included

inline vitrove_result list(vitrove_store* handle, int with_header,
                           int (*visit)(void* cookie, const vitrove_listed*), void* cookie,
                           const vitrove_context* context) noexcept {
  const auto show = [&](const ListedValue& value) {
    vitrove_listed raw{};
    raw.struct_size = sizeof raw;
    std::memcpy(raw.key.digest, value.key.digest.bytes.data(), sizeof raw.key.digest);
    raw.size = value.size;
    raw.last_used_us =
        std::chrono::duration_cast<std::chrono::microseconds>(value.last_used.time_since_epoch())
            .count();
    if (value.header) raw.header = reinterpret_cast<const std::uint8_t*>(value.header->data());
    return visit(cookie, &raw) != 0;
  };
  return answer_one([&] {
    return store_of(handle).list({.with_header = with_header != 0}, show, Call(context).context());
  });
}

inline vitrove_result claim(vitrove_store* handle, const vitrove_key* key, std::int64_t ttl_ms,
                            char* token, const vitrove_context* context) noexcept {
  return answer_one([&] {
    const Call call(context);
    ClaimToken ours;
    const StoreResult result = store_of(handle).claim(
        key_of(*key), std::chrono::milliseconds(ttl_ms), ours, call.context());
    if (ours.value.size() >= token_size) {
      // Cut short it would neither renew nor release.
      store_of(handle).release(key_of(*key), ours, ClaimOutcome::not_stored, call.context());
      return StoreResult{StoreStatus::io_error};
    }
    set_text(token, token_size, ours.value.c_str());
    return result;
  });
}

inline vitrove_result renew(vitrove_store* handle, const vitrove_key* key, const char* token,
                            std::int64_t ttl_ms, const vitrove_context* context) noexcept {
  return answer_one([&] {
    return store_of(handle).renew(key_of(*key), ClaimToken{token},
                                  std::chrono::milliseconds(ttl_ms), Call(context).context());
  });
}

inline vitrove_result release(vitrove_store* handle, const vitrove_key* key, const char* token,
                              int stored, const vitrove_context* context) noexcept {
  return answer_one([&] {
    return store_of(handle).release(key_of(*key), ClaimToken{token},
                                    stored != 0 ? ClaimOutcome::stored : ClaimOutcome::not_stored,
                                    Call(context).context());
  });
}

}  // namespace plugin_adapter

// `name` is the URL scheme and part of the file name (libvitrove_store_NAME.so); `options` lists
// every option that the creator reads, ended by {}.
template <plugin_adapter::Creator creator>
constexpr vitrove_store_plugin make_store_plugin(const char* name, const char* version,
                                                 const vitrove_option* options) {
  vitrove_store_plugin table{};
  table.struct_size = sizeof table;
  table.abi_version = VITROVE_STORE_PLUGIN_ABI;
  table.name = name;
  table.version = version;
  table.options = options;
  table.create = plugin_adapter::create<creator>;
  table.destroy = plugin_adapter::destroy;
  table.batch_get = plugin_adapter::batch_get;
  table.batch_put = plugin_adapter::batch_put;
  table.batch_is_exist = plugin_adapter::batch_is_exist;
  table.capabilities = plugin_adapter::capabilities;
  table.health = plugin_adapter::health;
  table.register_buffer = plugin_adapter::register_buffer;
  table.unregister_buffer = plugin_adapter::unregister_buffer;
  table.batch_remove = plugin_adapter::batch_remove;
  table.list = plugin_adapter::list;
  table.claim = plugin_adapter::claim;
  table.renew = plugin_adapter::renew;
  table.release = plugin_adapter::release;
  return table;
}

}  // namespace vitrove
