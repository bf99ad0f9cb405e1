#include "ranks/rank_board.h"

#include <algorithm>
#include <utility>

#include "vitrove/error.h"

namespace vitrove {
namespace {

// Outcomes that this rank's host has not asked for. It may be slower than rank 0's, but one that
// never asks must not hold pins for ever.
constexpr std::size_t max_unasked = 256;

[[noreturn]] void throw_unknown() {
  throw Error(ErrorCode::not_found, "no such request was asked for");
}

}  // namespace

void RankBoard::throw_if_failed() const {
  if (failure_) throw Error(ErrorCode::unavailable, "the rank group has failed: " + *failure_);
}

RankRequestPtr RankBoard::find_wanted(const std::string& id) const {
  const auto found = std::ranges::find_if(
      requests_, [&](const auto& r) { return r->wanted && !r->abandoned && r->id == id; });
  return found == requests_.end() ? nullptr : *found;
}

bool RankBoard::hopeless(const RankRequest& request) const {
  return !request.decided && Clock::now() > request.since + patience_;
}

RankRequestPtr RankBoard::take_on(const std::string& id, std::vector<ValueExpectation> items,
                                  bool refused) {
  auto request = std::make_shared<RankRequest>();
  request->id = id;
  request->digest = digest_of(items);
  request->items = std::move(items);
  request->wanted = !refused;
  request->refused = refused;
  request->mask.resize(request->items.size());
  request->views.resize(request->items.size());
  request->since = Clock::now();
  request->deadline = request->since + load_timeout_;
  {
    std::lock_guard lock(mutex_);
    throw_if_failed();
    request->sequence = ++last_sequence_;
    requests_.push_back(request);
  }
  changed_.notify_all();
  return request;
}

void RankBoard::ask(const std::string& id, std::vector<ValueExpectation> items) {
  const auto digest = digest_of(items);
  std::lock_guard lock(mutex_);
  const auto told =
      std::ranges::find_if(requests_, [&](const auto& r) { return !r->wanted && r->id == id; });
  // What was agreed before the group's end holds for hosts that ask after it, too.
  if (told == requests_.end() || !(*told)->decided) throw_if_failed();
  if (told == requests_.end()) {
    auto request = std::make_shared<RankRequest>();
    request->id = id;
    request->items = std::move(items);
    request->digest = digest;
    request->wanted = true;
    request->since = Clock::now();
    requests_.push_back(std::move(request));
    return;
  }
  if (!(*told)->refused && (*told)->digest != digest) {
    throw Error(ErrorCode::internal, "a request means other items on this rank than on rank 0",
                "request " + id);
  }
  if ((*told)->refused) (*told)->items = std::move(items);
  (*told)->wanted = true;
}

bool RankBoard::abandon(const std::string& id) {
  std::vector<RankRequestPtr> gone;
  {
    std::lock_guard lock(mutex_);
    for (const auto& request : requests_) {
      if (request->id != id || !request->wanted || request->abandoned) continue;
      request->abandoned = true;
      gone.push_back(request);
    }
    std::erase_if(requests_, [](const auto& r) { return r->abandoned && r->decided; });
  }
  changed_.notify_all();
  for (const auto& request : gone) request->cancel.request_stop();
  return !gone.empty();
}

std::optional<bool> RankBoard::progress(const std::string& id) {
  std::lock_guard lock(mutex_);
  const auto request = find_wanted(id);
  if (request && request->decided) return true;
  throw_if_failed();
  if (!request) return std::nullopt;
  if (hopeless(*request)) {
    throw Error(ErrorCode::deadline_exceeded, "rank 0 said nothing of a request in time",
                "request " + id);
  }
  return false;
}

std::optional<std::vector<bool>> RankBoard::mask(const std::string& id) const {
  std::lock_guard lock(mutex_);
  const auto request = find_wanted(id);
  if (!request || !request->planned) return std::nullopt;
  return request->mask;
}

RankOutcome RankBoard::taken(const RankRequestPtr& request) {
  requests_.remove(request);
  if (request->refused) {  // which comes without items: as many misses as were asked for
    request->hits.assign(request->items.size(), false);
    request->views.resize(request->items.size());
  }
  return {request->sequence, request->aborted, std::move(request->hits), std::move(request->views)};
}

RankOutcome RankBoard::take(const std::string& id) {
  std::lock_guard lock(mutex_);
  const auto request = find_wanted(id);
  if (!request || !request->decided) {
    throw_if_failed();
    throw_unknown();
  }
  return taken(request);
}

RankOutcome RankBoard::wait(const std::string& id) {
  std::unique_lock lock(mutex_);
  const auto request = find_wanted(id);
  if (!request) {
    throw_if_failed();
    throw_unknown();
  }
  while (!request->decided) {
    throw_if_failed();
    if (request->abandoned) throw_unknown();
    if (hopeless(*request)) {
      throw Error(ErrorCode::deadline_exceeded, "rank 0 said nothing of a request in time",
                  "request " + id);
    }
    changed_.wait_until(lock, request->since + patience_ + std::chrono::milliseconds(1));
  }
  if (request->abandoned) throw_unknown();
  return taken(request);
}

// Whoever follows tells requests of one id apart by their order, so they are told in order.
bool RankBoard::waits_for_its_turn(const RankRequestPtr& request) const {
  for (const auto& earlier : requests_) {
    if (earlier == request) return false;
    if (!earlier->planned && earlier->id == request->id) return true;
  }
  return false;
}

RankBoard::Task RankBoard::next(Clock::time_point beat) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopping_) return {Step::stop, nullptr};
    throw_if_failed();
    const auto now = Clock::now();
    if (now >= beat) return {Step::beat, nullptr};
    auto wake = beat;
    for (const auto& request : requests_) {
      if (request->decided) continue;
      const bool over = request->abandoned || request->refused || now >= request->deadline;
      const bool ready = request->looked || over;
      if (!request->planned && ready && !waits_for_its_turn(request)) {
        return {Step::plan, request};
      }
      if (request->planned && (request->loaded || over)) return {Step::decide, request};
      wake = std::min(wake, request->deadline);
    }
    changed_.wait_until(lock, wake);
  }
}

PlanMessage RankBoard::plan(const RankRequestPtr& request, bool with_items) {
  PlanMessage plan;
  plan.req_id = request->id;
  plan.digest = request->digest;
  if (with_items) plan.items = request->items;
  {
    std::lock_guard lock(mutex_);
    request->planned = true;
    plan.refused = request->refused;
    plan.mask = request->mask;
  }
  changed_.notify_all();
  return plan;
}

RankRequestPtr RankBoard::heard_plan(std::uint64_t sequence, PlanMessage plan, bool will_load) {
  std::lock_guard lock(mutex_);
  const auto asked = std::ranges::find_if(
      requests_, [&](const auto& r) { return r->sequence == 0 && r->id == plan.req_id; });
  RankRequestPtr request;
  if (asked != requests_.end()) {
    request = *asked;
    if (!plan.refused && request->digest != plan.digest) {
      throw Error(ErrorCode::internal, "a request means other items on this rank than on rank 0",
                  "request " + plan.req_id);
    }
  } else {
    request = std::make_shared<RankRequest>();
    request->id = std::move(plan.req_id);
    request->digest = plan.digest;
    request->items = std::move(plan.items);
    requests_.push_back(request);
  }
  request->sequence = sequence;
  request->refused = plan.refused;
  request->mask = std::move(plan.mask);
  request->views.resize(request->mask.size());
  request->planned = true;
  request->loaded = !will_load || request->abandoned || request->refused || stopping_;
  request->since = Clock::now();
  request->deadline = request->since + load_timeout_;
  changed_.notify_all();
  return request->loaded ? nullptr : request;
}

RankRequestPtr RankBoard::by_sequence(std::uint64_t sequence) const {
  std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      requests_, [&](const auto& r) { return r->sequence == sequence && !r->decided; });
  if (found == requests_.end()) {
    throw Error(ErrorCode::internal, "rank 0 decided a request that this rank does not know");
  }
  return *found;
}

std::vector<std::int64_t> RankBoard::close_locked(RankRequest& request, bool aborted) {
  request.closed = true;
  std::vector<std::int64_t> votes;
  votes.reserve(request.views.size());
  for (const auto& view : request.views) {
    votes.push_back(!aborted && !request.abandoned && view ? 1 : 0);
  }
  return votes;
}

std::vector<std::int64_t> RankBoard::await_votes(const RankRequestPtr& request, bool aborted) {
  std::unique_lock lock(mutex_);
  while (!aborted && !request->loaded && !request->abandoned && !stopping_ &&
         Clock::now() < request->deadline) {
    changed_.wait_until(lock, request->deadline);
  }
  return close_locked(*request, aborted);
}

std::vector<std::int64_t> RankBoard::close(const RankRequestPtr& request, bool& aborted) {
  std::lock_guard lock(mutex_);
  aborted = request->abandoned || request->refused;
  return close_locked(*request, aborted);
}

void RankBoard::decide(const RankRequestPtr& request, std::vector<bool> hits, bool aborted) {
  std::vector<EmbeddingView> unused;  // given back after the lock
  {
    std::lock_guard lock(mutex_);
    if (hits.size() != request->mask.size()) {
      throw Error(ErrorCode::internal, "rank 0 decided more or fewer items than it planned");
    }
    for (std::size_t i = 0; i < hits.size(); ++i) {
      if (!hits[i] && request->views[i]) unused.push_back(std::move(request->views[i]));
    }
    request->hits = std::move(hits);
    request->aborted = aborted;
    request->decided = true;
    if (request->abandoned || (leads_ && !request->wanted)) requests_.remove(request);
    trim();
  }
  changed_.notify_all();
  request->cancel.request_stop();
}

void RankBoard::trim() {
  const auto unasked = [](const auto& r) { return r->decided && !r->wanted; };
  if (static_cast<std::size_t>(std::ranges::count_if(requests_, unasked)) <= max_unasked) return;
  requests_.erase(std::ranges::find_if(requests_, unasked));
}

bool RankBoard::looked(const RankRequestPtr& request, std::vector<RankSource::Found> found) {
  {
    std::lock_guard lock(mutex_);
    if (request->planned || request->closed) return false;
    for (std::size_t i = 0; i < found.size(); ++i) {
      request->mask[i] = found[i].found;
      request->views[i] = std::move(found[i].view);
    }
    request->looked = true;
  }
  changed_.notify_all();
  return true;
}

RequestContext RankBoard::context_of(const RankRequestPtr& request) const {
  std::lock_guard lock(mutex_);
  return {request->deadline, request->cancel.get_token(), request->id};
}

std::vector<std::size_t> RankBoard::missing(const RankRequestPtr& request) const {
  std::lock_guard lock(mutex_);
  std::vector<std::size_t> places;
  if (request->closed) return places;
  for (std::size_t i = 0; i < request->mask.size(); ++i) {
    if (request->mask[i] && !request->views[i]) places.push_back(i);
  }
  return places;
}

void RankBoard::loaded(const RankRequestPtr& request, std::span<const std::size_t> places,
                       std::vector<EmbeddingView> views) {
  {
    std::lock_guard lock(mutex_);
    if (request->closed) return;
    for (std::size_t i = 0; i < places.size() && i < views.size(); ++i) {
      request->views[places[i]] = std::move(views[i]);
    }
    request->loaded = true;
  }
  changed_.notify_all();
}

bool RankBoard::fail(const std::string& reason) {
  std::list<RankRequestPtr> open;
  std::vector<EmbeddingView> unused;  // given back after the lock
  {
    std::lock_guard lock(mutex_);
    if (failure_) return false;
    failure_ = reason;
    open = requests_;
    for (const auto& request : open) {
      if (request->decided) continue;
      request->closed = true;
      for (auto& view : request->views) unused.push_back(std::exchange(view, {}));
    }
  }
  changed_.notify_all();
  for (const auto& request : open) request->cancel.request_stop();
  return true;
}

std::optional<std::string> RankBoard::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

void RankBoard::stop() {
  std::list<RankRequestPtr> open;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    open = requests_;
  }
  changed_.notify_all();
  for (const auto& request : open) request->cancel.request_stop();
}

bool RankBoard::stopping() const {
  std::lock_guard lock(mutex_);
  return stopping_;
}

}  // namespace vitrove
