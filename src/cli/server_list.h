// The servers of `vitrove encode --server ... --server ...`: which one the next file goes to.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace vitrove::cli {

// Files are spread over those that answer. One that gave no answer is left alone for a while, each
// time for longer, and then tried with one file again: whoever comes back at its address is used
// again. One that takes files and never answers must not collect them, so nobody gets a second file
// before it has answered a first, and one whose oldest call takes long comes last.
class ServerList {
 public:
  using Clock = std::chrono::steady_clock;

  struct Call {
    std::size_t server = 0;
    Clock::time_point began;
    bool is_trial = false;  // it has not answered yet, or was away: ask how it is first
  };

  // `now`: for tests.
  explicit ServerList(const std::vector<std::string>& urls,
                      std::function<Clock::time_point()> now = &Clock::now);

  // The best server that was not tried; nothing when all were. It is told by ended() what became of
  // the call. Waits while all that are left owe a first answer: one of several that hangs would get
  // as many files as the others otherwise, before the first of them has had time to answer.
  std::optional<Call> next(const std::vector<bool>& tried);

  enum class Ended : std::uint8_t { answered, away };
  void ended(const Call& call, Ended how);

  const std::string& url(std::size_t index) const { return servers_[index].url; }
  std::size_t size() const { return servers_.size(); }

 private:
  static constexpr std::chrono::seconds first_pause{5};
  static constexpr std::chrono::seconds longest_pause{300};
  // So many times the mean is long for a call. It decides only who is preferred: a clip among
  // pictures takes as long and harms nobody.
  static constexpr int long_call = 4;

  struct Server {
    std::string url;
    std::multiset<Clock::time_point> calls;  // when those under way began
    bool answers = false;
    Clock::time_point away_until;
    Clock::duration pause = first_pause;
  };

  enum class State : std::uint8_t { good, slow, owes_an_answer, away };
  State state_of(const Server& server, Clock::time_point now) const;
  // Less is better. Of two slow ones the one that began its oldest call later.
  std::tuple<State, Clock::duration, std::size_t> rank(const Server& server,
                                                       Clock::time_point now) const;
  std::optional<std::size_t> best(const std::vector<bool>& tried, Clock::time_point now) const;

  std::function<Clock::time_point()> now_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Server> servers_;
  std::size_t turn_ = 0;
  Clock::duration answered_time_{0};
  std::size_t answered_calls_ = 0;
};

}  // namespace vitrove::cli
