#include <utility>

#include "vitrove/rank_agreement.h"

namespace vitrove {
namespace {

bool fits(const EmbeddingView& view, const ValueExpectation& item) {
  return view.modality() == item.modality && view.dtype() == item.dtype && view.dim() == item.dim &&
         (!item.rows || view.rows() == *item.rows) &&
         view.model_fingerprint() == item.model_fingerprint && view.tenant() == item.tenant;
}

class ControllerSource final : public RankSource {
 public:
  ControllerSource(EmbeddingCacheController& controller,
                   std::vector<std::shared_ptr<EmbeddingStore>> stores)
      : controller_(controller), stores_(std::move(stores)) {}

  std::vector<Found> look_up(std::span<const ValueExpectation> items,
                             const RequestContext& context) override {
    std::vector<Found> found = found_in_pool(items);
    if (stores_.empty()) {
      for (auto& item : found) item.found = true;
    }
    for (const auto& store : stores_) ask(*store, items, context, found);
    return found;
  }

  std::vector<EmbeddingView> load(std::span<const ValueExpectation> items,
                                  const RequestContext& context) override {
    std::vector<EmbeddingView> views(items.size());
    auto acquired = controller_.acquire(items, context);
    // Duties to fill are given back first: what this request joins may be its own. Its rows are
    // made after the ranks have agreed, by whoever then acquires the key.
    for (std::size_t i = 0; i < acquired.size(); ++i) {
      if (auto* hit = std::get_if<Hit>(&acquired[i])) views[i] = std::move(hit->view);
      if (auto* fill = std::get_if<FillTicket>(&acquired[i])) const auto left = std::move(*fill);
    }
    for (std::size_t i = 0; i < acquired.size(); ++i) {
      auto* join = std::get_if<JoinTicket>(&acquired[i]);
      if (join != nullptr) views[i] = joined(*join, context);
    }
    return views;
  }

  std::uint64_t pool_bytes() const override {
    const PagePool& pool = controller_.pool();
    return pool.total_pages() * pool.page_bytes();
  }

 private:
  std::vector<Found> found_in_pool(std::span<const ValueExpectation> items) {
    std::vector<EmbeddingKey> keys;
    keys.reserve(items.size());
    for (const ValueExpectation& item : items) keys.push_back(item.key);
    std::vector<EmbeddingView> views(items.size());
    controller_.peek(keys, views);
    std::vector<Found> found(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      // What does not fit is left to acquire(), which takes it away.
      if (!views[i] || !fits(views[i], items[i])) continue;
      controller_.count_hit(views[i]);
      found[i] = {true, std::move(views[i])};
    }
    return found;
  }

  static EmbeddingView joined(JoinTicket& join, const RequestContext& context) {
    try {
      auto end = join.wait(context);
      auto* view = std::get_if<EmbeddingView>(&end);
      return view != nullptr ? std::move(*view) : EmbeddingView{};
    } catch (const Error&) {
      return {};
    }
  }

  static void ask(EmbeddingStore& store, std::span<const ValueExpectation> items,
                  const RequestContext& context, std::vector<Found>& found) {
    std::vector<EmbeddingKey> keys;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (found[i].found) continue;
      keys.push_back(items[i].key);
      places.push_back(i);
    }
    if (keys.empty()) return;
    StoreContext call;
    call.deadline = context.deadline;
    call.cancel = context.cancel;
    call.trace_id = context.req_id;
    const auto results = store.batch_is_exist(keys, call);
    if (results.size() != keys.size()) return;
    for (std::size_t i = 0; i < keys.size(); ++i) found[places[i]].found = results[i].ok();
  }

  EmbeddingCacheController& controller_;
  const std::vector<std::shared_ptr<EmbeddingStore>> stores_;
};

}  // namespace

std::unique_ptr<RankSource> make_rank_source(EmbeddingCacheController& controller,
                                             std::vector<std::shared_ptr<EmbeddingStore>> stores) {
  return std::make_unique<ControllerSource>(controller, std::move(stores));
}

std::uint64_t rank_pool_bytes(std::uint64_t pool_bytes, int rank, int size, bool all_rank_get) {
  if (all_rank_get) return pool_bytes / static_cast<std::uint64_t>(size);
  return rank == 0 ? pool_bytes : 0;
}

}  // namespace vitrove
