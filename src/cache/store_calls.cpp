#include "cache/store_calls.h"

#include <utility>

namespace vitrove {

void StoreCall::run(const std::stop_token& shutdown) noexcept {
  const std::stop_callback forward(shutdown, [this] { stop_.request_stop(); });
  const auto start = Clock::now();
  StoreContext context;
  context.deadline = deadline();
  context.cancel = stop_.get_token();
  context.trace_id = site_.trace_id;
  try {
    Answer answer = ask(context);
    if (!settled_.exchange(true)) {
      const auto took = Clock::now() - start;
      stats_.record(answer.results, answer.bytes, took);
      if (!Tier::is_fault(answer.results)) tier().fetch_costs().note(answer.bytes, took);
    }
    results_ = std::move(answer.results);
  } catch (...) {  // out of memory
    results_.clear();
  }
  site_.group->finished(number_);
}

void StoreCall::abandon(const std::string& reason) {
  if (!settled_.exchange(true)) stats_.record_faults(keys_.size(), reason);
  stop_.request_stop();
}

void StoreCall::leave() {
  if (!settled_.exchange(true)) stats_.record_cancelled(keys_.size());
  stop_.request_stop();
}

void StoreCall::note_movement() noexcept {
  moved_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
}

bool StoreCall::moved_since(Clock::time_point moment) const noexcept {
  return moved_.load(std::memory_order_relaxed) >= moment.time_since_epoch().count();
}

ExistCall::ExistCall(const CallSite& site, std::size_t number, std::vector<EmbeddingKey> keys)
    : StoreCall(site, number, site.tier->exists(), std::move(keys)) {}

StoreCall::Answer ExistCall::ask(const StoreContext& context) {
  return {tier().exist(keys_, context), 0};
}

GetCall::GetCall(const CallSite& site, std::size_t number, std::vector<Item> items)
    : StoreCall(site, number, site.tier->gets(), keys_of(items)), values_(items.size()) {
  std::uint64_t bytes = 0;
  for (Item& item : items) {
    bytes += item.landing.value_bytes();
    landings_.emplace_back(std::move(item.landing));
    verifiers_.push_back(std::make_unique<ValueVerifier>(item.wanted, landings_.back()->buffers()));
  }
  set_bytes_held(bytes);
}

std::vector<EmbeddingKey> GetCall::keys_of(const std::vector<Item>& items) {
  std::vector<EmbeddingKey> keys;
  keys.reserve(items.size());
  for (const Item& item : items) keys.push_back(item.wanted.key);
  return keys;
}

StoreCall::Answer GetCall::ask(const StoreContext& context) {
  std::vector<MutableBufferList> lists;
  lists.reserve(landings_.size());
  for (const auto& landing : landings_) lists.push_back(landing->buffers());
  StoreContext watched = context;
  watched.observer = this;
  Answer answer{tier().get(keys_, lists, watched), 0};
  if (is_abandoned()) return answer;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (answer.results[i].ok()) {
      answer.bytes += landings_[i]->value_bytes();
      values_[i] = judge(i, answer.results[i]);
    }
    // What is not wanted goes back before the waiter hears of it.
    if (!answer.results[i].ok() || values_[i].reject != Reject::none) landings_[i].reset();
  }
  return answer;
}

VerifiedValue GetCall::judge(std::size_t index, const StoreResult& result) {
  VerifiedValue value;
  if (result.size != 0 && result.size != landings_[index]->value_bytes()) {
    value.reject = Reject::size;
    return value;
  }
  return verifiers_[index]->finish();
}

void GetCall::on_piece(std::size_t index, std::uint64_t offset, ConstBuffer piece) noexcept {
  if (index >= verifiers_.size()) return;
  note_movement();
  verifiers_[index]->on_piece(offset, piece);
}

}  // namespace vitrove
