// Threads that look up and load, so that the sequencer never waits for a store. One that hangs
// costs its thread; requests that then find none in time are misses.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ranks/rank_board.h"

namespace vitrove {

class RankLoader {
 public:
  // `looks`: rank 0 looks first; the others load what it has found.
  RankLoader(RankBoard& board, std::unique_ptr<RankSource> source, bool looks,
             std::uint32_t threads);
  ~RankLoader();
  RankLoader(const RankLoader&) = delete;
  RankLoader& operator=(const RankLoader&) = delete;

  void enqueue(RankRequestPtr request);

 private:
  void run();
  void serve(const RankRequestPtr& request);
  bool look(const RankRequestPtr& request, const RequestContext& context);
  std::vector<EmbeddingView> load(std::span<const ValueExpectation> items,
                                  const RequestContext& context);

  RankBoard& board_;
  const std::unique_ptr<RankSource> source_;
  const bool looks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<RankRequestPtr> queue_;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;  // last: they use all of the above
};

}  // namespace vitrove
