#include "simulation/trace_maker.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "simulation/media_model.h"

namespace vitrove::simulation {

Trace TraceMaker::make_independent(std::size_t requests) {
  constexpr std::size_t media_count = 100000;
  constexpr double exponent = 0.8;
  std::vector<TraceRequest> media;
  std::vector<double> weights;
  for (std::size_t i = 1; i <= media_count; ++i) {
    const auto kind = random_() % 100;
    media.push_back(kind < 10 ? new_video() : kind < 30 ? new_sound() : new_picture());
    weights.push_back(std::pow(static_cast<double>(i), -exponent));
  }
  std::discrete_distribution<std::size_t> pick(weights.begin(), weights.end());
  Trace trace;
  while (trace.size() < requests) trace.push_back(media[pick(random_)]);
  return trace;
}

Trace TraceMaker::make_sessions(std::size_t requests) {
  for (std::size_t i = 0; i < popular_count; ++i) popular_.push_back(new_picture());
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

TraceRequest TraceMaker::new_picture() { return picture(++last_key_, uniform()); }
TraceRequest TraceMaker::new_video() { return video(++last_key_, uniform()); }
TraceRequest TraceMaker::new_sound() { return sound(++last_key_, uniform()); }

const TraceRequest& TraceMaker::popular() {
  const double rank = std::pow(static_cast<double>(popular_count), uniform());
  return popular_[std::min(popular_count - 1, static_cast<std::size_t>(rank) - 1)];
}

TraceMaker::Session TraceMaker::new_session() {
  const auto kind = random_() % 100;
  if (kind < 45) {
    return {about(4), 30, most_media, 0.3, {chance(0.4) ? popular() : new_picture()}};
  }
  if (kind < 55) return {about(15), 5, 3, 1, {new_picture()}};  // an agent and its screenshots
  if (kind < 60) return {about(3), 60, most_media, 0, {new_video()}};
  if (kind < 75) return {about(2), 30, most_media, 0.2, {new_sound()}};
  return {1, 30, most_media, 0, {chance(0.3) ? popular() : new_picture()}};
}

void TraceMaker::take(Session& session, Trace& trace) {
  const std::size_t first =
      session.media.size() > session.window ? session.media.size() - session.window : 0;
  trace.insert(trace.end(), session.media.begin() + static_cast<std::ptrdiff_t>(first),
               session.media.end());
  --session.turns_left;
  if (session.media.size() < most_media && chance(session.chance_of_new)) {
    session.media.push_back(chance(0.2) ? popular() : new_picture());
  }
}

}  // namespace vitrove::simulation
