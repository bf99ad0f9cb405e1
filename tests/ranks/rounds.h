// Random rounds of one rank with others (field case B58): in each, one rank evicts, is slow, fails
// or aborts. Every rank draws the same rounds from the seed and writes down what it was told.
#pragma once

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ranks/troubled_source.h"
#include "unit/cache/support.h"
#include "vitrove/rank_agreement.h"

namespace vitrove::testing {

// One rank's cache. `store`: none on a rank that loads nothing.
struct RankCache {
  explicit RankCache(std::shared_ptr<EmbeddingStore> store,
                     const ControllerOptions& options = small_pool(12))
      : controller(options, {store}), source(make_troubled(store)) {}

  std::unique_ptr<TroubledSource> make_troubled(const std::shared_ptr<EmbeddingStore>& store) {
    auto made = std::make_unique<TroubledSource>(
        make_rank_source(controller, std::vector<std::shared_ptr<EmbeddingStore>>{store}));
    trouble = made.get();
    return made;
  }

  EmbeddingCacheController controller;
  TroubledSource* trouble = nullptr;  // owned by `source`, then by the agreement
  std::unique_ptr<TroubledSource> source;
};

struct RoundsReport {
  std::vector<std::string> lines;  // one a round; "" where this rank had aborted
  std::vector<std::string> errors;
  std::chrono::milliseconds longest{0};
  std::size_t hits = 0;
};

// What is wrong with the lines of several ranks together; empty when they agree. A rank that had
// aborted was told nothing. Where that was rank 0 the others have to hear of it and have no hit,
// but that its word came too late is possible: then they are told what was decided before.
inline std::vector<std::string> disagreements(
    const std::vector<std::vector<std::string>>& lines_of_ranks) {
  constexpr std::string_view word = " aborted ";
  std::vector<std::string> wrong;
  std::size_t aborted_by_rank_zero = 0;
  std::size_t heard_of_it = 0;
  for (std::size_t round = 0; round < lines_of_ranks.at(0).size(); ++round) {
    const std::string* told = nullptr;  // the first that did not abort
    for (const auto& lines : lines_of_ranks) {
      const std::string& line = lines.at(round);
      if (line.empty()) continue;
      if (told == nullptr) told = &line;
      if (line != *told) wrong.push_back(line + " differs from " + *told);
    }
    if (told == nullptr) continue;
    const std::size_t said = told->find(word);
    const bool was_rank_zero = lines_of_ranks[0][round].empty();
    if (said != told->npos && !was_rank_zero) wrong.push_back(*told + ": by nobody");
    if (said != told->npos && told->find('1', said + word.size()) != told->npos)
      wrong.push_back(*told + ": a hit");
    aborted_by_rank_zero += was_rank_zero ? 1 : 0;
    heard_of_it += was_rank_zero && said != told->npos ? 1 : 0;
  }
  if (aborted_by_rank_zero >= 3 && heard_of_it == 0)
    wrong.emplace_back("nobody ever heard that rank 0 aborted");
  return wrong;
}

class Rounds {
 public:
  // `cache`: null on a rank that loads nothing.
  Rounds(int rank, int size, RankAgreement& agreement, RankCache* cache)
      : rank_(rank), size_(size), agreement_(agreement), cache_(cache) {}

  RoundsReport run(int count, std::uint64_t seed) {
    for (int round = 0; round < count; ++round) {
      std::mt19937_64 random(seed * 1'000'003 + static_cast<std::uint64_t>(round));
      const auto start = Clock::now();
      play(round, random);
      report_.longest =
          std::max(report_.longest,
                   std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start));
    }
    return std::move(report_);
  }

 private:
  void play(int round, std::mt19937_64& random) {
    std::vector<Picture> items(1 + random() % 6);
    for (auto& item : items) item = picture(static_cast<int>(random() % 24));
    const auto fault = random() % 10;
    const bool victim = static_cast<int>(random() % static_cast<std::uint64_t>(size_)) == rank_;
    if (victim && cache_ != nullptr) trouble(fault);
    const std::string id = "round " + std::to_string(round);
    std::vector<ValueExpectation> expected;
    for (const auto& item : items) expected.push_back(item.expectation());
    agreement_.prefetch(id, std::move(expected));
    if (victim && fault == 4) {
      agreement_.abort(id);
      report_.lines.emplace_back();
      return;
    }
    auto outcome = agreement_.wait(id);
    note(items, outcome);
    encode_the_rest(items, outcome);
  }

  void trouble(std::uint64_t fault) {
    if (fault == 0) cache_->controller.flush(FlushScope::local, std::nullopt, request());
    if (fault == 1) cache_->trouble->prepare(Trouble::delay, 300ms);
    if (fault == 2) cache_->trouble->prepare(Trouble::empty);
    if (fault == 3) cache_->trouble->prepare(Trouble::throws);
    // Fault 4 is an abort. What is evicted from the store as well is missing on this rank alone.
    if (fault == 5) cache_->controller.flush(FlushScope::all, std::nullopt, request());
  }

  void note(const std::vector<Picture>& items, const RankOutcome& outcome) {
    std::string line = std::to_string(outcome.sequence) + (outcome.aborted ? " aborted " : " ");
    for (std::size_t i = 0; i < items.size(); ++i) {
      line += outcome.hits.at(i) ? '1' : '0';
      const auto& view = outcome.views.at(i);
      report_.hits += outcome.hits[i] ? 1 : 0;
      if (static_cast<bool>(view) != (outcome.hits[i] && cache_ != nullptr)) {
        report_.errors.push_back(line + ": a view without a hit, or a hit without one");
      } else if (view && rows_of(view) != golden_bytes(items[i])) {
        report_.errors.push_back(line + ": wrong bytes of " + items[i].name);
      }
    }
    report_.lines.push_back(std::move(line));
  }

  void encode_the_rest(const std::vector<Picture>& items, const RankOutcome& outcome) {
    std::vector<Picture> missed;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!outcome.hits[i]) missed.push_back(items[i]);
    }
    if (cache_ != nullptr && !missed.empty()) serve(cache_->controller, missed);
  }

  const int rank_;
  const int size_;
  RankAgreement& agreement_;
  RankCache* const cache_;
  RoundsReport report_;
};

}  // namespace vitrove::testing
