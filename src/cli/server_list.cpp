#include "cli/server_list.h"

#include <algorithm>
#include <utility>

namespace vitrove::cli {

ServerList::ServerList(const std::vector<std::string>& urls, std::function<Clock::time_point()> now)
    : now_(std::move(now)) {
  for (const std::string& url : urls) servers_.emplace_back().url = url;
}

std::optional<ServerList::Call> ServerList::next(const std::vector<bool>& tried) {
  std::unique_lock lock(mutex_);
  while (const auto index = best(tried, now_())) {
    Server& server = servers_[*index];
    const auto now = now_();
    const bool must_wait = state_of(server, now) == State::owes_an_answer && servers_.size() > 1;
    if (must_wait) {
      changed_.wait(lock);
      continue;
    }
    turn_ = *index + 1;
    server.calls.insert(now);
    return Call{*index, now, !server.answers};
  }
  return std::nullopt;
}

void ServerList::ended(const Call& call, Ended how) {
  {
    const std::lock_guard lock(mutex_);
    const auto now = now_();
    Server& server = servers_[call.server];
    server.calls.erase(server.calls.find(call.began));
    server.answers = how == Ended::answered;
    if (server.answers) {
      server.pause = first_pause;
      answered_time_ += now - call.began;
      ++answered_calls_;
    } else {
      server.away_until = now + server.pause;
      server.pause = std::min<Clock::duration>(2 * server.pause, longest_pause);
    }
  }
  changed_.notify_all();
}

ServerList::State ServerList::state_of(const Server& server, Clock::time_point now) const {
  if (!server.answers && server.away_until > now) return State::away;
  if (server.calls.empty()) return State::good;
  if (!server.answers) return State::owes_an_answer;
  const auto calls = static_cast<Clock::rep>(std::max<std::size_t>(answered_calls_, 1));
  const bool is_slow = now - *server.calls.begin() > long_call * (answered_time_ / calls);
  return is_slow ? State::slow : State::good;
}

std::tuple<ServerList::State, ServerList::Clock::duration, std::size_t> ServerList::rank(
    const Server& server, Clock::time_point now) const {
  const State state = state_of(server, now);
  const auto age = state == State::slow ? now - *server.calls.begin() : Clock::duration{0};
  return {state, age, server.calls.size()};
}

std::optional<std::size_t> ServerList::best(const std::vector<bool>& tried,
                                            Clock::time_point now) const {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const std::size_t index = (turn_ + i) % servers_.size();
    if (tried[index]) continue;
    if (!found || rank(servers_[index], now) < rank(servers_[*found], now)) found = index;
  }
  return found;
}

}  // namespace vitrove::cli
