#include "ranks/rank_loader.h"

#include <exception>
#include <utility>

#include "base/log.h"

namespace vitrove {

RankLoader::RankLoader(RankBoard& board, std::unique_ptr<RankSource> source, bool looks,
                       std::uint32_t threads)
    : board_(board), source_(std::move(source)), looks_(looks) {
  for (std::uint32_t i = 0; i < threads && source_; ++i) {
    threads_.emplace_back([this] { run(); });
  }
}

RankLoader::~RankLoader() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

void RankLoader::enqueue(RankRequestPtr request) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(request));
  }
  changed_.notify_one();
}

void RankLoader::run() {
  for (;;) {
    RankRequestPtr request;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      request = std::move(queue_.front());
      queue_.pop_front();
    }
    serve(request);
  }
}

void RankLoader::serve(const RankRequestPtr& request) {
  const RequestContext context = board_.context_of(request);
  if (looks_ && !look(request, context)) return;
  const auto places = board_.missing(request);
  std::vector<ValueExpectation> items;
  items.reserve(places.size());
  for (const std::size_t place : places) items.push_back(request->items[place]);
  board_.loaded(request, places, load(items, context));
}

bool RankLoader::look(const RankRequestPtr& request, const RequestContext& context) {
  std::vector<RankSource::Found> found;
  try {
    found = source_->look_up(request->items, context);
  } catch (const std::exception& error) {
    try_log_error("a rank's lookup failed", error.what());
  } catch (...) {
    try_log_error("a rank's lookup failed", "unknown exception");
  }
  if (found.size() != request->items.size()) {
    found = std::vector<RankSource::Found>(request->items.size());
  }
  return board_.looked(request, std::move(found));
}

std::vector<EmbeddingView> RankLoader::load(std::span<const ValueExpectation> items,
                                            const RequestContext& context) {
  if (items.empty()) return {};
  try {
    auto views = source_->load(items, context);
    if (views.size() == items.size()) return views;
    try_log_error("a rank's load failed", "wrong number of answers");
  } catch (const std::exception& error) {
    try_log_error("a rank's load failed", error.what());
  } catch (...) {
    try_log_error("a rank's load failed", "unknown exception");
  }
  return {};
}

}  // namespace vitrove
