// EmbeddingStore: where embeddings are shared between instances (design section 5).
//
// A store maps an EmbeddingKey to one value, an opaque object in the value format. It knows nothing
// of pages, models or HTTP. The names are those SGLang's EmbeddingStore made familiar.
//
// Contract, tested by one suite for every backend (tests/contract/store_contract.h):
//  - Results are per key and in the order of the keys; one bad key never spoils its neighbours. The
//    result vector is always as long as the key list.
//  - A key may stand several times in one batch; each position gets its own full answer.
//  - The buffers of a get add up to exactly the value's size. Otherwise `size_mismatch`, with the
//    real size in `size` and undefined contents. Zero bytes in all is `invalid`; more than
//    capabilities().max_value_bytes is `too_large`. A value may be scattered over many buffers.
//  - `ok` from a get means that every byte was written; from a put that the value is stored whole
//    (or, with if_absent, that one was there already). A value is never visible half-written.
//  - Calls block at most until `context.deadline` as far as the engine allows; the caller keeps
//    buffers alive until the call returns, however late that is (overdue calls are the lanes'
//    business, see cache/). A call that notices `cancel` or the deadline answers `timeout` or
//    `cancelled` for what is left.
//  - All methods may be called from several threads at once, and none throws: unexpected exceptions
//    of a backend are turned into `io_error` by the lanes anyway.
//  - Construction never blocks on an engine: a store connects in the background, starts degraded
//    when its engine is away, and reconnects for ever with back-off (unless told `strict=true`).
//
// Ownership: a store owns no buffer it is handed. Destroying a store ends its background work.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "vitrove/embedding_key.h"
#include "vitrove/value_format.h"

namespace vitrove {

using MutableBuffer = std::span<std::byte>;
using ConstBuffer = std::span<const std::byte>;
using MutableBufferList = std::span<const MutableBuffer>;  // one value, scattered
using ConstBufferList = std::span<const ConstBuffer>;      // one value, gathered

// Sees the bytes of a get while they are still in the CPU's cache, so that a checksum costs no
// second trip to memory ("hash while hot"). The caller of a get hands one in; a store that reads
// sequentially calls it right after each piece arrived in its destination.
//
//  - `piece` lies inside the caller's buffers of that key: it never spans two of them, is never
//    empty and is not copied elsewhere. `offset` is its first byte's place in the value.
//  - Pieces of one key come in value order, without gap or overlap, one at a time. A piece at
//  offset
//    0 starts the value anew (the store tried again). Pieces of different keys may interleave and
//    may come from different threads at once. The last call has ended before the get returns.
//  - A store with capabilities().reports_pieces has reported the whole of every value it answers
//    `ok` for. Others may ignore the observer: whoever saw fewer bytes than the value has hashes
//    afterwards. Pieces of a key that was not answered `ok` mean nothing.
class PieceObserver {
 public:
  virtual ~PieceObserver() = default;
  // `key_index` is the position in the batch.
  virtual void on_piece(std::size_t key_index, std::uint64_t offset,
                        ConstBuffer piece) noexcept = 0;
};

// Comes with every call.
struct StoreContext {
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::stop_token cancel;
  std::string_view trace_id;          // the request's req_id, for logs
  PieceObserver* observer = nullptr;  // of gets; outlives the call

  bool overdue() const { return std::chrono::steady_clock::now() >= deadline; }
};

enum class StoreStatus : std::uint8_t {
  ok,
  absent,         // no such key: a plain miss, not an error
  size_mismatch,  // buffers do not add up to the value's size
  invalid,        // bad arguments: empty buffers, wrong list lengths
  too_large,      // beyond capabilities().max_value_bytes or the capacity
  timeout,
  cancelled,
  unavailable,  // engine away, breaker open, shutting down
  no_space,     // ENOSPC, EDQUOT, out of memory in the engine
  denied,       // EACCES, EPERM, EROFS, authentication, read-only replica
  io_error,
  unsupported,  // optional method that this backend lacks
  conflict,     // claim is somebody else's; no value stands in the key's place, and cannot go
};
std::string_view to_string(StoreStatus status);

struct StoreResult {
  StoreStatus status = StoreStatus::ok;
  std::uint64_t size = 0;  // bytes of the value, where known
  int error_number = 0;    // errno where there is one, for counters and logs

  bool ok() const { return status == StoreStatus::ok; }
  // A fault of the store, as against an answer about the key.
  bool is_fault() const {
    return status == StoreStatus::timeout || status == StoreStatus::unavailable ||
           status == StoreStatus::no_space || status == StoreStatus::denied ||
           status == StoreStatus::io_error;
  }
};

enum class PutMode : std::uint8_t {
  if_absent,  // what is there already counts as success and stays
  replace,    // after a value was rejected
};

struct StoreCapabilities {
  bool can_remove = false;
  bool can_list = false;
  bool can_claim = false;
  bool can_replace = false;
  bool is_local = false;        // no network between us and the bytes
  bool reports_pieces = false;  // see PieceObserver
  std::uint64_t max_value_bytes = std::uint64_t{1} << 40;
};

enum class StoreState : std::uint8_t { ready, degraded, down };

struct StoreHealth {
  StoreState state = StoreState::ready;
  std::string detail;                     // for operators and logs; never a secret
  std::optional<std::uint64_t> bytes;     // used, where known
  std::optional<std::uint64_t> capacity;  // where bounded
  std::optional<std::uint64_t> entries;
};

struct ListedValue {
  EmbeddingKey key;
  std::uint64_t size = 0;
  std::chrono::system_clock::time_point last_used{};
  std::optional<HeaderBytes> header;  // when asked for, and readable
};

struct ListOptions {
  bool with_header = false;
};

// Names one claim; only its holder can renew or release it.
struct ClaimToken {
  std::string value;
};
enum class ClaimOutcome : std::uint8_t { stored, not_stored };

class EmbeddingStore {
 public:
  virtual ~EmbeddingStore() = default;

  // "file", "redis", ...; used as the `store` label of metrics together with the tier's position.
  virtual std::string_view name() const = 0;

  // One buffer a key. The defaults call the multi-buffer forms.
  virtual std::vector<StoreResult> batch_get(std::span<const EmbeddingKey> keys,
                                             std::span<const MutableBuffer> buffers,
                                             const StoreContext& context);
  virtual std::vector<StoreResult> batch_put(std::span<const EmbeddingKey> keys,
                                             std::span<const ConstBuffer> buffers, PutMode mode,
                                             const StoreContext& context);

  virtual std::vector<StoreResult> batch_get_into_multi_buffers(
      std::span<const EmbeddingKey> keys, std::span<const MutableBufferList> buffers,
      const StoreContext& context) = 0;
  virtual std::vector<StoreResult> batch_put_from_multi_buffers(
      std::span<const EmbeddingKey> keys, std::span<const ConstBufferList> buffers, PutMode mode,
      const StoreContext& context) = 0;

  // ok with the size, or absent. A hint, not a reservation: the get decides.
  virtual std::vector<StoreResult> batch_is_exist(std::span<const EmbeddingKey> keys,
                                                  const StoreContext& context) = 0;

  // The pool announces its arena once, for backends that do RDMA or fixed buffers.
  virtual void register_buffer(MutableBuffer arena);
  virtual void unregister_buffer(MutableBuffer arena);
  // The same for an arena that is a shared mapping of `memfd` from its start, so that a backend can
  // hand it to another process; it duplicates the descriptor. The default forgets the descriptor
  // and calls register_buffer.
  virtual void register_shared_buffer(MutableBuffer arena, int memfd);

  // How the key is spelled in this backend; default is key.text().
  virtual std::string get_key(const EmbeddingKey& key) const;

  virtual StoreCapabilities capabilities() const = 0;
  virtual StoreHealth health() const = 0;

  // Optional, see capabilities(). The defaults answer `unsupported`.
  virtual std::vector<StoreResult> batch_remove(std::span<const EmbeddingKey> keys,
                                                const StoreContext& context);
  // Calls `visit` for every value under this store's prefix until it returns false. Values that
  // come or go meanwhile may or may not be seen.
  virtual StoreResult list(const ListOptions& options,
                           const std::function<bool(const ListedValue&)>& visit,
                           const StoreContext& context);
  // ok with `token` filled in: the caller is the one to encode. conflict: somebody else is.
  virtual StoreResult claim(const EmbeddingKey& key, std::chrono::milliseconds ttl,
                            ClaimToken& token, const StoreContext& context);
  virtual StoreResult renew(const EmbeddingKey& key, const ClaimToken& token,
                            std::chrono::milliseconds ttl, const StoreContext& context);
  virtual StoreResult release(const EmbeddingKey& key, const ClaimToken& token,
                              ClaimOutcome outcome, const StoreContext& context);
};

}  // namespace vitrove
