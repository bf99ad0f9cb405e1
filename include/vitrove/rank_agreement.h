// RankAgreement: one answer for all ranks of a tensor-parallel group (design section 6).
//
// A host that splits one encoder over several processes must take the same items from the cache on
// every rank: ranks that disagree enter different collectives of the model and wait for each other
// for ever (field case B58). So rank 0 looks up and decides, and tells the others twice about each
// request: the hit mask once it has looked (they may start encoding the rest), and the outcome of
// each item once it has loaded.
//
//   rank 0 owns the arena (default)   rank 0 loads; the others only learn the outcome
//   all_rank_get                      every rank loads into a pool of its own; an item is a hit
//                                     where all of them have it (the minimum decides)
//
// One thread, the sequencer, issues all collectives of a group in rank 0's order, each tagged with
// a running number and the request. The other ranks' sequencers do nothing but follow, so it does
// not matter in what order, when, or whether their hosts ask for a request. Every request that rank
// 0 takes on gets its mask and its outcome on every path: failed, late and aborted ones as misses.
//
// Time: a rank has `load_timeout` for a request; what is not there by then is a miss, and comes too
// late. Rank 0 speaks at least every `heartbeat`, and all ranks answer. A collective that fails or
// takes longer than `timeout`, a message that makes no sense, and a request that rank 0 does not
// take on within `timeout` poison the group: each rank's calls throw Error{unavailable} with the
// reason, for good. The host goes on without the cache, or starts its ranks anew.
//
// Use, on every rank alike (the names are those of SGLang's controller):
//
//   agreement.prefetch(req_id, keys, expected_tokens, modality);
//   while (!agreement.check_prefetch_progress(req_id)) ...;   // or wait(req_id)
//   RankOutcome outcome = agreement.take(req_id);
//   encode together what outcome.hits leaves out; publish it where there is a controller
//
// check_prefetch_progress() turns true on each rank at its own time, but for the same outcome. A
// host must not give up by a clock of its own (ranks would part again): the times above bound every
// wait. A request ends with take(), or with abort().
//
// A req_id may be used again once it is taken on all ranks or, on each, in the same order; ranks
// that mean other items by one id poison the group.
//
// Thread-safe. The destructor ends the group, for the other ranks too, but in order: it waits until
// all have heard of it (with the next heartbeat), and what was agreed before may still be asked for
// and taken. It waits for running loads, however long they take, and for collectives at most
// `timeout` each. A rank that is gone without a word poisons the group.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vitrove/collectives.h"
#include "vitrove/embedding_cache_controller.h"

namespace vitrove {

// What one rank has. Called from several threads at once; what it throws counts as nothing found.
class RankSource {
 public:
  struct Found {
    bool found = false;  // with an empty view: a hint, load() may find it gone
    EmbeddingView view;  // pinned, when it is there already
  };

  virtual ~RankSource() = default;

  // One answer an item. Rank 0 only.
  virtual std::vector<Found> look_up(std::span<const ValueExpectation> items,
                                     const RequestContext& context) = 0;

  // One pinned view an item, or an empty one. Should end by the context's deadline; what comes
  // later is given back.
  virtual std::vector<EmbeddingView> load(std::span<const ValueExpectation> items,
                                          const RequestContext& context) = 0;

  // Of the pool behind it; 0 where there is none.
  virtual std::uint64_t pool_bytes() const { return 0; }
};

// What a controller has. `stores`: its own, nearest first, for the mask. Both must outlive it.
std::unique_ptr<RankSource> make_rank_source(
    EmbeddingCacheController& controller, std::vector<std::shared_ptr<EmbeddingStore>> stores = {});

struct RankOptions {
  bool all_rank_get = false;
  std::chrono::milliseconds timeout{5'000};       // of a collective
  std::chrono::milliseconds load_timeout{2'000};  // of a request on a rank; less than `timeout`
  std::chrono::milliseconds heartbeat{1'000};     // less than `timeout`
  std::uint32_t load_threads = 2;
  // What the operator asked for, for all ranks together. A rank whose pool is larger than its share
  // (rank_pool_bytes) is refused.
  std::optional<std::uint64_t> pool_bytes;
  // What prefetch() by keys expects of an item, one a modality; key and rows are filled in.
  std::vector<ValueExpectation> modalities;
};

struct RankOutcome {
  std::uint64_t sequence = 0;  // rank 0's number of the request
  bool aborted = false;        // by rank 0
  // Equal on all ranks.
  std::vector<bool> hits;
  // Of the hits, on ranks that load; elsewhere, and of misses, empty.
  std::vector<EmbeddingView> views;
};

class RankAgreement {
 public:
  // `source` may be null on ranks that do not load. Throws Error{invalid_argument}.
  RankAgreement(std::unique_ptr<Collectives> collectives, std::unique_ptr<RankSource> source,
                RankOptions options);
  ~RankAgreement();
  RankAgreement(const RankAgreement&) = delete;
  RankAgreement& operator=(const RankAgreement&) = delete;

  // Asks for a request; returns at once. Throws Error{invalid_argument} for lists of different
  // lengths, a modality that the options do not name or a request that is too long, and
  // Error{unavailable} when the group has failed.
  void prefetch(const std::string& req_id, std::span<const EmbeddingKey> keys,
                std::span<const std::uint32_t> expected_tokens, Modality modality);
  void prefetch(const std::string& req_id, std::vector<ValueExpectation> items);

  // Rank 0 will not ask for a request that other ranks may have asked for: they get an aborted
  // outcome without hits. Throws Error{invalid_argument} on other ranks.
  void refuse(const std::string& req_id);

  // This rank's host has lost interest. On rank 0 the outcome is misses for all; elsewhere only
  // what this rank has loaded is missing (all_rank_get). The outcome is not kept here. False when
  // nobody asked.
  bool abort(const std::string& req_id);

  // True when the outcome is there to be taken, or nothing is known of the request. Throws
  // Error{unavailable} when the group has failed.
  bool check_prefetch_progress(const std::string& req_id);

  // Which items rank 0 hopes to have; nothing before it has looked.
  std::optional<std::vector<bool>> mask(const std::string& req_id) const;

  // The outcome. Throws Error{not_found} when there is none yet.
  RankOutcome take(const std::string& req_id);

  // Blocks until the outcome is there, and takes it. Throws Error{not_found} when nobody asked, or
  // abort() came meanwhile; Error{unavailable} when the group has failed.
  RankOutcome wait(const std::string& req_id);

  // Why the group has failed; nothing while it has not.
  std::optional<std::string> failure() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// A rank's share of the pool that the operator asked for: all of it for rank 0 alone, or an equal
// share with all_rank_get (field case B72).
std::uint64_t rank_pool_bytes(std::uint64_t pool_bytes, int rank, int size, bool all_rank_get);

}  // namespace vitrove
