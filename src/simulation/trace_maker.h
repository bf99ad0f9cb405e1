// Makes traces up. The one of sessions mixes what multimodal services see: chats that send all
// their pictures again with every turn, agents that send their last screenshots again with every
// step, pictures that many people send, long videos that are asked about a few times, short sounds,
// and media that nobody sends twice. Sessions begin at random; the pauses between turns are
// log-normal, as people's are: mostly half a minute, sometimes hours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <vector>

#include "simulation/trace.h"

namespace vitrove::simulation {

class TraceMaker {
 public:
  explicit TraceMaker(std::uint64_t seed) : random_(seed) {}

  // Every request by itself, by Zipf's law: what a service behind a feed or a shop sees.
  Trace make_independent(std::size_t requests);
  Trace make_sessions(std::size_t requests);

 private:
  static constexpr double sessions_a_second = 1;
  static constexpr std::size_t popular_count = 3000;
  static constexpr std::size_t most_media = 64;

  struct Session {
    int turns_left = 0;
    double pause = 30;                // seconds between turns, median
    std::size_t window = most_media;  // how many of its latest media each turn sends
    double chance_of_new = 0;         // that a turn brings something new
    std::vector<TraceRequest> media;
  };
  struct Turn {
    double at = 0;
    Session session;
    bool operator>(const Turn& other) const { return at > other.at; }
  };

  double uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  bool chance(double probability) { return uniform() < probability; }
  int about(double mean) { return 1 + std::geometric_distribution<int>(1 / mean)(random_); }
  TraceRequest new_picture();
  TraceRequest new_video();
  TraceRequest new_sound();
  const TraceRequest& popular();
  Session new_session();
  void take(Session& session, Trace& trace);

  std::mt19937_64 random_;
  std::uint64_t last_key_ = 0;
  std::vector<TraceRequest> popular_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
};

}  // namespace vitrove::simulation
