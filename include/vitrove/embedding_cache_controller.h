// EmbeddingCacheController: the cache itself (design section 6). It takes its stores by injection,
// nearest first, owns the PagePool, and answers every item of a request in its own way:
//
//   READY in the pool        a pinned view, no copy                                     "local"
//   FILLING, or being loaded a JoinTicket: wait for that fill, do not repeat it         "joined"
//   a store has it           loaded into fresh pages, checked, then a pinned view       "store"
//   nobody has it            a FillTicket: the caller is asked to encode                "encoded"
//
// Rules that callers may rely on:
//  - A hit is a pin. What a view shows cannot vanish, move or be overwritten before the view is
//    released. Pins belong to entry objects, never to keys.
//  - All hits of a request are pinned before anything is allocated for its misses.
//  - One fill a key: concurrent requests share one load or one encode. Check and registration are
//    one step. If the leader fails or leaves, exactly one follower takes over; if the leader's
//    error is about the item itself (invalid_argument, too_large, unsupported_format) the followers
//    at that moment get the same error.
//  - Store faults are misses of single items and cost at most the lookup's deadline.
//  - An entry is published whole or not at all: rows, dim, dtype and finiteness are checked first;
//    a value from a store is also checked against header, key, model, tenant and checksum. What was
//    rejected in a store is replaced there by the next put.
//  - An item that can never fit, or that finds everything pinned, is returned uncached (a view over
//    heap memory) without evicting others; it is still put to the stores when staging can hold it.
//  - Completion wakes the waiter. Only FillTicket::claim() polls: its news are other processes'.
//
// One encode a cluster (design section 5): FillTicket::claim() asks the farthest store that can
// claim for the right to encode, and waits for whoever has it. Nobody claims unless a put will
// follow.
//
// No deadlock by construction: acquire() never waits for another request's encode, a claim is taken
// right before its encode and not kept for others, and every wait for one has a bound. A caller
// serves its FillTickets first and waits on
// its JoinTickets last (a key that stands twice in one request joins its own first occurrence, so
// this order is required); a ticket that wait() hands him is served before he waits for the next.
// resolve_features() may wait for another request's encode, but never on a thread that holds an
// unserved ticket with features of its own, and never for longer than an encode takes.
//
// Counting: an item is one lookup, counted when its fate is known: local and store hits by
// acquire(), joined ones when wait() has a view or an error, misses when their ticket was
// published, failed or dropped. What claim() and resolve_features() find counts as what was found,
// not as a miss. A follower who takes over counts as what his fill becomes.
//
// Scaling: a hit waits for nobody. It reads a cell of a table of 128 shards, raises the count of
// one entry in one atomic step, tells the eviction policy by a store into that entry's own place,
// and counts in a stripe of its thread. No word is written by all hits, so two cores hand a cache
// line to each other only when they hit the same entry at once, or a neighbour of its place; the
// more entries, the rarer. Whatever changes the cache takes locks that no hit ever takes: a shard's
// for its keys, one for eviction, one for pages. A pin alone keeps an entry from being evicted. So
// hits scale with cores until they share the memory's bandwidth; fills are bounded by the encoder
// long before they meet at a lock.
//
// Threads: every method may be called from any thread. Views and tickets are move-only values; each
// belongs to one thread at a time and must not outlive the controller. No method throws unless its
// comment says so. The destructor drops queued puts (wait_for_puts() first to keep them), asks
// running store calls to stop and waits for them until their deadlines, at most `shutdown_timeout`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "vitrove/embedding_key.h"
#include "vitrove/embedding_store.h"
#include "vitrove/error.h"
#include "vitrove/eviction_policy.h"
#include "vitrove/page_pool.h"
#include "vitrove/side_data.h"
#include "vitrove/types.h"
#include "vitrove/value_format.h"

namespace vitrove {

// Where an item's rows came from; the spelling of to_string is the API's.
enum class Source : std::uint8_t { local, joined, store, encoded };
std::string_view to_string(Source source);

struct RequestContext {
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::stop_token cancel;
  std::string req_id;
};

// Tells when bytes handed over are really there: ready now, after a host wait, or a device event.
// READY follows it. An empty function means ready now. It is called once, on the publishing thread,
// and throws Error when the copy failed.
using Completion = std::function<void()>;

// A pinned, read-only embedding. Move-only; the destructor releases the pin.
class EmbeddingView {
 public:
  EmbeddingView() = default;
  EmbeddingView(EmbeddingView&&) noexcept;
  EmbeddingView& operator=(EmbeddingView&&) noexcept;
  ~EmbeddingView();

  explicit operator bool() const { return entry_ != nullptr; }

  std::uint32_t rows() const;
  std::uint32_t dim() const;
  DType dtype() const;
  Modality modality() const;
  std::uint64_t bytes() const;  // of the rows
  std::chrono::microseconds encode_cost() const;
  const SideData& side_data() const;
  Digest256 model_fingerprint() const;
  Digest256 tenant() const;
  // The key the embedding is stored under (for an alias: the first key encoded).
  EmbeddingKey stored_key() const;

  // Each run holds whole rows: a [rows, dim] tensor. Valid until release.
  std::span<const std::span<const std::byte>> runs() const;

  // False when the rows are on the heap because the pool could not take them.
  bool pooled() const;
  // Copies the rows to the heap and gives the pin back, for slow readers.
  void detach();
  void release() noexcept;
  // A completion is awaited first (device copies). Passes on what it throws; the pin is gone in any
  // case.
  void release(const Completion& after);

  class Entry;  // internal

 private:
  friend class EmbeddingCacheController;
  friend struct ControllerAccess;
  Entry* entry_ = nullptr;
};

// Rows as an encoder made them.
struct EncodedRows {
  std::span<const std::byte> bytes;  // rows * dim * element size, row-major
  std::uint32_t rows = 0;
  SideData side;
  std::chrono::microseconds encode_cost{0};
};

// The duty to fill one key. Destroying it unserved means that the leader left.
class FillTicket {
 public:
  FillTicket(FillTicket&&) noexcept;
  FillTicket& operator=(FillTicket&&) noexcept;
  ~FillTicket();

  const EmbeddingKey& key() const;

  // Asks the store for the claim that claim() is about, and does not wait: what takes time before
  // the encoder, decoding above all, can be done meanwhile. Never throws; without it, claim() asks.
  void begin_claim(const RequestContext& context) noexcept;

  // Before the encoder: makes sure that no other process of the cluster is encoding the same.
  // `wait` false answers `claimed_elsewhere` at once when one is; the
  // caller does what else there is to do and comes again. `wait` true polls for the value and for
  // the claim, with back-off, for a time that depends on the encode cost seen so far, and then goes
  // without a claim. On a hit the ticket is served, and the source is `store`. Anything that goes
  // wrong with the store means going without a claim. A claim that was won is renewed until the put
  // has ended (it is released within a hundredth of its ttl then) or the ticket is gone. Throws
  // Error{cancelled} or Error{deadline_exceeded} by the context while it waits.
  enum class Claim : std::uint8_t { encode_it, claimed_elsewhere, served };
  struct ClaimResult {
    Claim outcome = Claim::encode_it;
    EmbeddingView view;  // served
    Source source = Source::store;
  };
  ClaimResult claim(const RequestContext& context, bool wait = true);

  // Second look, after preprocessing and before the encoder (design section 3): does an item with
  // the very same tensors have an embedding? `feature` is like the item's expectation with the
  // feature key in place of the content key. On a hit the ticket is served: an alias is made for
  // its content key, in the pool and in the stores. On a miss the feature key is remembered, and
  // publish() will put its alias too. Joins a fill of the same feature key that is under way.
  std::optional<std::pair<EmbeddingView, Source>> resolve_features(const EmbeddingKey& feature,
                                                                   const RequestContext& context);

  // Copies the rows into pages (or heap), validates, makes the entry READY, wakes the followers and
  // puts to the stores behind. Throws Error{internal} when the rows are not what was expected
  // (count, size, NaN or infinity): then nothing is cached and a follower takes over.
  EmbeddingView publish(const EncodedRows& encoded, const Completion& ready = {});

  // Gives up with a reason.
  void fail(const Error& error);

 private:
  friend class EmbeddingCacheController;
  friend struct ControllerAccess;
  struct State;
  explicit FillTicket(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Somebody else is at it.
class JoinTicket {
 public:
  JoinTicket(JoinTicket&&) noexcept;
  JoinTicket& operator=(JoinTicket&&) noexcept;
  ~JoinTicket();

  // Blocks until the fill ends. A view, or the duty to take over. Throws the leader's Error when it
  // is about the item itself, Error{deadline_exceeded} or Error{cancelled} by the context.
  std::variant<EmbeddingView, FillTicket> wait(const RequestContext& context);

 private:
  friend class EmbeddingCacheController;
  friend struct ControllerAccess;
  struct State;
  explicit JoinTicket(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct Hit {
  EmbeddingView view;
  Source source = Source::local;  // local or store
};

using Acquired = std::variant<Hit, JoinTicket, FillTicket>;

// What becomes of an embedding once it was encoded. Replies never wait for a put.
enum class WritePolicy : std::uint8_t {
  through,  // put at once
  behind,   // put after `write_behind_delay`, or when what waits exceeds half of its bound; what is
            // flushed, removed or rejected meanwhile is never written
  never,    // the stores are only read
};
std::string_view to_string(WritePolicy policy);

struct ControllerOptions {
  PagePoolOptions pool;
  std::string eviction_policy = "gdsf";        // docs/eviction.md says why
  std::vector<ModalityShare> modality_shares;  // eviction_policy.h says what they promise
  bool enable_eviction = true;
  // Entries evicted before the lock is given up and taken anew; never a reason to fail.
  std::uint32_t max_eviction_batch = 100;

  std::chrono::microseconds store_timeout{200'000};
  std::uint64_t store_min_bandwidth = 200'000'000;  // bytes a second
  std::chrono::microseconds put_timeout{30'000'000};
  std::uint32_t get_threads = 4;  // a tier
  std::uint32_t put_threads = 2;  // a tier
  std::uint32_t max_pending_gets = 1024;
  // Bytes of queued puts; beyond it the newest is dropped and counted.
  std::uint64_t max_pending_put_bytes = std::uint64_t{256} << 20;
  // Claims: one encode in the whole cluster. A claimant that died costs others one ttl at most.
  bool claims = true;
  std::chrono::milliseconds claim_ttl{5'000};
  WritePolicy write_policy = WritePolicy::through;
  std::chrono::microseconds write_behind_delay{10'000'000};
  // An embedding is put when it was used so often while it was in the pool; its encode is the first
  // use. One that never was in the pool, or left it before, is not put.
  std::uint32_t put_after_uses = 1;
  // Stores across a network are not given what is cheaper to encode again than to fetch, as far as
  // the gets so far tell. Now and then one is put all the same, so that the measure stays fresh.
  bool skip_cheap_puts = false;
  // Consecutive faults or calls without progress that open a store's breaker, and how long until
  // one trial call goes through.
  std::uint32_t breaker_faults = 5;
  std::chrono::milliseconds breaker_pause{2'000};
  // How long the destructor waits for store calls that do not end when they are asked to. What
  // hangs longer is left behind with the memory it needs.
  std::chrono::microseconds shutdown_timeout{5'000'000};
};

// Counters only grow; gauges are of the moment. Taken without stopping anybody.
struct StoreOpStats {
  std::uint64_t ok = 0, absent = 0, faults = 0;                // results, by key
  std::uint64_t cancelled = 0;                                 // nobody waited any more
  std::vector<std::pair<std::string, std::uint64_t>> reasons;  // faults by reason or errno name
  std::vector<std::uint64_t> seconds_buckets;  // per call; see store_seconds_bounds()
  double seconds_sum = 0;
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  std::uint64_t pending = 0;  // gauge
};
struct StoreStats {
  std::string name;  // "file", or "file#1" for a second one
  StoreOpStats get, put, exist, remove;
  bool breaker_open = false;      // of lookups
  bool put_breaker_open = false;  // of puts: a full disk can still be read
  StoreHealth health;
};
// Upper bounds, in seconds, of StoreOpStats::seconds_buckets (one more bucket is unbounded).
std::span<const double> store_seconds_bounds();

struct ClaimStats {
  std::uint64_t won = 0;      // ours to encode
  std::uint64_t waited = 0;   // another's, whose value came
  std::uint64_t expired = 0;  // another's, waited for in vain: encoded without a claim
  std::uint64_t failed = 0;   // the store could not tell: encoded without a claim
  // Of those won: another took it over meanwhile, and may encode the same.
  std::uint64_t lost = 0;
  // Of those won: the store did not take it back; it blocks its key until its time is up.
  std::uint64_t unreleased = 0;
};

struct LookupStats {
  std::uint64_t local = 0, joined = 0, store = 0, miss = 0;
  LookupStats& operator+=(const LookupStats& other) {
    local += other.local;
    joined += other.joined;
    store += other.store;
    miss += other.miss;
    return *this;
  }
};
struct ControllerStats {
  LookupStats lookups[4];                                // by Modality value
  std::uint64_t saved_us = 0;                            // encode time that hits saved
  std::uint64_t entries_ready = 0, entries_filling = 0;  // gauges
  // Gauges. used + free is the pool; pinned is a part of used; quarantined is what overdue store
  // calls hold, pages, header slots and staging.
  std::uint64_t bytes_used = 0, bytes_pinned = 0, bytes_free = 0, bytes_quarantined = 0;
  std::uint64_t pool_bytes = 0, payload_bytes = 0;  // gauges: waste = used - payload (rows)
  std::uint64_t evictions_space = 0, evictions_flush = 0, evictions_removed = 0;
  std::uint64_t uncached_too_large = 0, uncached_no_space = 0;
  // By to_string(Reject), and "dangling_alias" for aliases that lead to no embedding.
  std::vector<std::pair<std::string, std::uint64_t>> rejected;
  std::uint64_t puts_dropped = 0;
  std::uint64_t puts_skipped = 0;  // cheaper to encode than to fetch
  ClaimStats claims;
  std::vector<StoreStats> stores;
};

// Lookups of one model in one modality. They are kept apart for the first twelve such pairs; what
// comes later is counted by modality alone, with no model. All lines of a modality together are
// ControllerStats::lookups.
struct ModelLookups {
  Modality modality = Modality::image;
  std::optional<Digest256> model;
  LookupStats lookups;
  std::uint64_t saved_us = 0;  // encode time that hits saved
};

// What a pool holds, READY: gauges of one model in one modality.
struct ModelEntries {
  Modality modality = Modality::image;
  Digest256 model;
  std::uint64_t entries = 0, runs = 0;
  std::uint64_t bytes = 0, payload_bytes = 0;       // pages held, rows: the rest is waste
  std::chrono::seconds mean_age{0}, oldest_age{0};  // since they came into the pool
};
struct ValuedKey {
  EmbeddingKey key;
  Modality modality = Modality::image;
  Digest256 model;
  std::uint64_t hits = 0;  // since it came into the pool
  std::uint64_t saved_us = 0;
};
struct PoolReport {
  std::vector<ModelEntries> models;
  std::vector<ValuedKey> most_valued;  // by encode time saved since they came into the pool
};

enum class FlushScope : std::uint8_t { local, store, all };
struct FlushTier {
  std::string name;  // "pool", "file", ...
  // Embeddings, not the aliases that went with them. Nothing: this tier cannot list, or not remove,
  // and was left alone.
  std::optional<std::uint64_t> removed;
  // False when time ran out or the store failed: some of what was meant may be left.
  bool complete = true;
};
struct FlushReport {
  std::vector<FlushTier> tiers;
};

class EmbeddingCacheController {
 public:
  // Throws Error{invalid_argument} or Error{unavailable} from the pool and policy.
  explicit EmbeddingCacheController(ControllerOptions options,
                                    std::vector<std::shared_ptr<EmbeddingStore>> stores = {});
  ~EmbeddingCacheController();
  EmbeddingCacheController(const EmbeddingCacheController&) = delete;
  EmbeddingCacheController& operator=(const EmbeddingCacheController&) = delete;

  // One answer an item, in order. Blocks for the store lookups only. An entry that is not what its
  // item expects (shape, origin) is dropped, and the item is a miss.
  std::vector<Acquired> acquire(std::span<const ValueExpectation> items,
                                const RequestContext& context);

  // The hot path by itself: a pinned view from the pool, or nothing. No store, no allocation, no
  // lock shared between shards. Counted as a local hit when it hits.
  EmbeddingView try_get(const EmbeddingKey& key);
  // The same for all keys of a request (acquire() does so too): their waits for memory overlap,
  // which in a large cache is a fraction of the time. Views of keys that are not there are empty;
  // what a view held before is released. Throws Error{invalid_argument} unless there are as many
  // views as keys.
  void try_get(std::span<const EmbeddingKey> keys, std::span<EmbeddingView> views);

  // try_get() in two steps, for a caller who may still have to go the long way: a view that counts
  // for nothing, and the count, once the caller has made use of it. A key that is only read (GET
  // /embeddings/{key}) is never counted. `view`: of this controller, not released.
  EmbeddingView peek(const EmbeddingKey& key);
  // The same for all keys of a request, as try_get() of many keys.
  void peek(std::span<const EmbeddingKey> keys, std::span<EmbeddingView> views);
  void count_hit(const EmbeddingView& view);

  // For GET /embeddings/{key}: pool, then stores; never creates a fill for encoders, nor waits for
  // one. Nothing about the value is known but its key and, when given, the tenant it must belong
  // to. Not a lookup in the statistics.
  std::optional<Hit> find(const EmbeddingKey& key, const std::optional<Digest256>& tenant,
                          const RequestContext& context);

  // From the pool and every tier. Pinned readers keep what they have; fills and puts of the key
  // that are under way are not published. Removing one key of an embedding drops its entry from the
  // pool, and from the stores what stands under that very key.
  FlushReport remove(const EmbeddingKey& key, const std::optional<Digest256>& tenant,
                     const RequestContext& context);

  // Drops what was READY, and keeps what was FILLING or waiting for a put from being published.
  // With `model`, only what that fingerprint wrote. Listing a large store may take half of the time
  // until the context's deadline, removing the rest of it.
  FlushReport flush(FlushScope scope, const std::optional<Digest256>& model,
                    const RequestContext& context);

  // Waits until queued and running puts have ended; those that wait behind are sent now. False when
  // the deadline came first.
  bool wait_for_puts(std::chrono::steady_clock::time_point deadline);

  ControllerStats stats() const;
  // Cheap: for somebody who watches how they grow.
  std::vector<ModelLookups> model_lookups() const;
  // Looks at every entry, each pinned for that moment, and stops nobody: some 50 ms a million.
  PoolReport inspect(std::size_t most_valued) const;
  const PagePool& pool() const;
  // Store faults do not count against readiness; this is for /health and doctor.
  std::vector<StoreStats> store_health() const;

  // Pins at zero, no page lost, no half state: throws std::logic_error naming what is wrong. For
  // tests, at rest.
  void check_invariants() const;

  struct Impl;  // internal

 private:
  friend struct ControllerAccess;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vitrove
