// Several ranks in one process, each with a controller over one memory store.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ranks/rounds.h"
#include "unit/ranks/thread_group.h"

namespace vitrove::testing {

inline RankOptions patient_options(bool all_rank_get) {
  RankOptions options;
  options.all_rank_get = all_rank_get;
  options.timeout = patience;
  options.load_timeout = patience / 2;
  options.heartbeat = 50ms;
  return options;
}

class Ranks {
 public:
  Ranks(int size, const RankOptions& options) : group_(size) {
    for (int rank = 0; rank < size; ++rank) {
      const bool loads = rank == 0 || options.all_rank_get;
      caches_.push_back(loads ? std::make_unique<RankCache>(store_) : nullptr);
      agreements_.push_back(std::make_unique<RankAgreement>(
          group_.member(rank), loads ? std::move(caches_.back()->source) : nullptr, options));
    }
  }

  RankAgreement& operator[](int rank) { return *agreements_[static_cast<std::size_t>(rank)]; }
  RankCache* cache(int rank) { return caches_[static_cast<std::size_t>(rank)].get(); }
  EmbeddingCacheController& controller(int rank) { return cache(rank)->controller; }
  TroubledSource& trouble(int rank) { return *cache(rank)->trouble; }
  EmbeddingStore& store() { return *store_; }
  int size() const { return static_cast<int>(agreements_.size()); }
  void leave(int rank) { agreements_[static_cast<std::size_t>(rank)].reset(); }

  // All ranks ask; the outcome of each.
  std::vector<RankOutcome> ask(const std::string& id, const std::vector<Picture>& items) {
    for (int rank = 0; rank < size(); ++rank) prefetch(rank, id, items);
    std::vector<RankOutcome> outcomes;
    for (int rank = 0; rank < size(); ++rank) outcomes.push_back((*this)[rank].wait(id));
    return outcomes;
  }

  void prefetch(int rank, const std::string& id, const std::vector<Picture>& items) {
    std::vector<ValueExpectation> expected;
    for (const auto& item : items) expected.push_back(item.expectation());
    (*this)[rank].prefetch(id, std::move(expected));
  }

 private:
  const std::shared_ptr<EmbeddingStore> store_ = make_memory_store();
  ThreadGroup group_;
  std::vector<std::unique_ptr<RankCache>> caches_;
  std::vector<std::unique_ptr<RankAgreement>> agreements_;
};

using Hits = std::vector<bool>;

// Why `call` threw; "" when it did not.
inline std::string reason_of(const std::function<void()>& call) {
  try {
    call();
    return {};
  } catch (const Error& error) {
    return error.code() == ErrorCode::unavailable ? error.what()
                                                  : "another error: " + std::string(error.what());
  }
}

}  // namespace vitrove::testing
