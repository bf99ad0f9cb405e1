// Traces of encode requests: who asks for which media, how many bytes its embedding has, and what
// encoding it costs.
//
// Read from a file (one request a line: key, bytes, cost in µs), or made up. The made-up one mixes
// what multimodal services see: chats that send all their pictures again with every turn, agents
// that send their last screenshots again with every step, pictures that many people send, long
// videos that are asked about a few times, short sounds, and media that nobody sends twice.
// Sessions begin at random; the pauses between turns are log-normal, as people's are: mostly half
// a minute, sometimes hours.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <queue>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace vitrove::bench {

struct TraceRequest {
  std::uint64_t key = 0;
  std::uint64_t bytes = 0;
  std::uint64_t cost_us = 0;
};
using Trace = std::vector<TraceRequest>;

inline Trace read_trace(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read the trace " + path);
  Trace trace;
  TraceRequest request;
  while (file >> request.key >> request.bytes >> request.cost_us) trace.push_back(request);
  if (!file.eof()) {
    throw std::runtime_error("the trace is not numbers after request " +
                             std::to_string(trace.size()));
  }
  return trace;
}

class TraceMaker {
 public:
  explicit TraceMaker(std::uint64_t seed) : random_(seed) {}

  // Every request by itself, by Zipf's law: what a service behind a feed or a shop sees.
  Trace make_independent(std::size_t requests) {
    constexpr std::size_t media_count = 100000;
    constexpr double exponent = 0.8;
    std::vector<TraceRequest> media;
    std::vector<double> weights;
    for (std::size_t i = 1; i <= media_count; ++i) {
      const auto kind = random_() % 100;
      media.push_back(kind < 10 ? video() : kind < 30 ? sound() : picture());
      weights.push_back(std::pow(static_cast<double>(i), -exponent));
    }
    std::discrete_distribution<std::size_t> pick(weights.begin(), weights.end());
    Trace trace;
    while (trace.size() < requests) trace.push_back(media[pick(random_)]);
    return trace;
  }

  Trace make_sessions(std::size_t requests) {
    for (std::size_t i = 0; i < popular_count; ++i) popular_.push_back(picture());
    Trace trace;
    double next_arrival = 0;
    while (trace.size() < requests) {
      if (turns_.empty() || next_arrival < turns_.top().at) {
        turns_.push({next_arrival, new_session()});
        next_arrival += std::exponential_distribution<double>(sessions_a_second)(random_);
        continue;
      }
      Turn turn = turns_.top();
      turns_.pop();
      take(turn.session, trace);
      if (turn.session.turns_left == 0) continue;
      turn.at += std::lognormal_distribution<double>(std::log(turn.session.pause), 2)(random_);
      turns_.push(std::move(turn));
    }
    return trace;
  }

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

  bool chance(double probability) {
    return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
  }
  double between(double low, double high) {  // evenly by magnitude
    return std::exp(std::uniform_real_distribution<double>(std::log(low), std::log(high))(random_));
  }
  int about(double mean) { return 1 + std::geometric_distribution<int>(1 / mean)(random_); }

  TraceRequest media(double tokens, double row_bytes, double us_a_token, double us_extra) {
    // Attention makes long inputs cost more a token.
    const double cost = us_extra + tokens * us_a_token * (1 + tokens / 8000);
    return {++last_key_, static_cast<std::uint64_t>(tokens * row_bytes),
            static_cast<std::uint64_t>(cost)};
  }
  TraceRequest picture() { return media(between(64, 4096), 4096, 40, 3000); }
  TraceRequest video() { return media(between(1500, 16000), 4096, 40, 300000); }
  TraceRequest sound() { return media(between(50, 1500), 2560, 12, 5000); }

  const TraceRequest& popular() {
    const double rank = std::pow(static_cast<double>(popular_count),
                                 std::uniform_real_distribution<double>(0, 1)(random_));
    return popular_[std::min(popular_count - 1, static_cast<std::size_t>(rank) - 1)];
  }

  Session new_session() {
    const auto kind = random_() % 100;
    if (kind < 45) return {about(4), 30, most_media, 0.3, {chance(0.4) ? popular() : picture()}};
    if (kind < 55) return {about(15), 5, 3, 1, {picture()}};  // an agent and its screenshots
    if (kind < 60) return {about(3), 60, most_media, 0, {video()}};
    if (kind < 75) return {about(2), 30, most_media, 0.2, {sound()}};
    return {1, 30, most_media, 0, {chance(0.3) ? popular() : picture()}};
  }

  void take(Session& session, Trace& trace) {
    const std::size_t first =
        session.media.size() > session.window ? session.media.size() - session.window : 0;
    trace.insert(trace.end(), session.media.begin() + static_cast<std::ptrdiff_t>(first),
                 session.media.end());
    --session.turns_left;
    if (session.media.size() < most_media && chance(session.chance_of_new)) {
      session.media.push_back(chance(0.2) ? popular() : picture());
    }
  }

  std::mt19937_64 random_;
  std::uint64_t last_key_ = 0;
  std::vector<TraceRequest> popular_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
};

}  // namespace vitrove::bench
