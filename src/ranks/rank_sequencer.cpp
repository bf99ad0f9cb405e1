#include "ranks/rank_sequencer.h"

#include <exception>
#include <limits>
#include <string>
#include <utility>

#include "base/log.h"
#include "vitrove/error.h"

namespace vitrove {

RankSequencer::RankSequencer(std::unique_ptr<Collectives> collectives, const RankOptions& options,
                             RankBoard& board, RankLoader& loader)
    : collectives_(std::move(collectives)),
      options_(options),
      board_(board),
      loader_(loader),
      beat_(Clock::now() + options.heartbeat),
      thread_([this] { run(); }) {}

RankSequencer::~RankSequencer() {
  thread_.join();
  collectives_->close();
}

void RankSequencer::fail(const std::string& reason) noexcept {
  try {
    if (!board_.fail(reason)) return;
  } catch (const std::exception& error) {
    try_log_error("a rank group failed without a trace", error.what());
  }
  if (!board_.stopping()) try_log_error("the rank group has failed", reason);
  collectives_->close();
}

void RankSequencer::run() noexcept {
  try {
    if (collectives_->rank() == 0) {
      lead();
    } else {
      follow();
    }
  } catch (const Error& error) {
    fail(error.detail().empty() ? error.what()
                                : std::string(error.what()) + " (" + error.detail() + ")");
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void RankSequencer::lead() {
  for (;;) {
    const auto [step, request] = board_.next(beat_);
    switch (step) {
      case RankBoard::Step::plan:
        say_plan(request);
        break;
      case RankBoard::Step::decide:
        say_outcome(request);
        break;
      case RankBoard::Step::beat:
        say(MessageKind::check);
        if (!check()) return say_stop();
        beat_ = Clock::now() + options_.heartbeat;
        break;
      case RankBoard::Step::stop:
        return say_stop();
    }
  }
}

void RankSequencer::say(MessageKind kind, std::uint64_t sequence, std::vector<std::byte> body) {
  MessageHeader header;
  header.kind = kind;
  header.all_rank_get = options_.all_rank_get;
  header.number = ++number_;
  header.sequence = sequence;
  header.body_bytes = static_cast<std::uint32_t>(body.size());
  auto bytes = encode_message_header(header);
  collectives_->broadcast(bytes, options_.timeout);
  if (!body.empty()) collectives_->broadcast(body, options_.timeout);
}

void RankSequencer::say_stop() {
  say(MessageKind::stop);
  check();  // the others have heard it before the connections close
}

void RankSequencer::say_plan(const RankRequestPtr& request) {
  const PlanMessage plan = board_.plan(request, options_.all_rank_get);
  say(MessageKind::plan, request->sequence, plan.encode());
}

void RankSequencer::say_outcome(const RankRequestPtr& request) {
  OutcomeMessage outcome;
  auto votes = board_.close(request, outcome.aborted);
  if (options_.all_rank_get) {
    say(MessageKind::vote, request->sequence, outcome.encode());
    outcome.hits = vote(std::move(votes));
  } else {
    for (const auto mine : votes) outcome.hits.push_back(mine != 0);
    say(MessageKind::outcome, request->sequence, outcome.encode());
  }
  board_.decide(request, std::move(outcome.hits), outcome.aborted);
}

void RankSequencer::follow() {
  std::vector<std::byte> body;
  for (;;) {
    const MessageHeader header = hear(body);
    switch (header.kind) {
      case MessageKind::plan:
        heard_plan(header, body);
        break;
      case MessageKind::outcome:
        heard_outcome(header, body);
        break;
      case MessageKind::vote:
        heard_vote(header, body);
        break;
      case MessageKind::check:
        check();
        break;
      case MessageKind::stop:
        board_.fail("rank 0 has ended the group");  // unless it was another, who is known
        check();
        return;
    }
  }
}

MessageHeader RankSequencer::hear(std::vector<std::byte>& body) {
  MessageHeaderBytes bytes{};
  collectives_->broadcast(bytes, options_.timeout);
  const MessageHeader header = decode_message_header(bytes);
  if (header.number != ++number_) {
    throw Error(ErrorCode::internal, "this rank missed a message of rank 0");
  }
  if (header.all_rank_get != options_.all_rank_get) {
    throw Error(ErrorCode::internal, "the ranks differ in all_rank_get");
  }
  body.resize(header.body_bytes);
  if (!body.empty()) collectives_->broadcast(body, options_.timeout);
  return header;
}

void RankSequencer::heard_plan(const MessageHeader& header, const std::vector<std::byte>& body) {
  auto request =
      board_.heard_plan(header.sequence, PlanMessage::decode(body), options_.all_rank_get);
  if (request) loader_.enqueue(std::move(request));
}

void RankSequencer::heard_outcome(const MessageHeader& header, const std::vector<std::byte>& body) {
  auto outcome = OutcomeMessage::decode(body);
  board_.decide(board_.by_sequence(header.sequence), std::move(outcome.hits), outcome.aborted);
}

void RankSequencer::heard_vote(const MessageHeader& header, const std::vector<std::byte>& body) {
  const auto outcome = OutcomeMessage::decode(body);
  const auto request = board_.by_sequence(header.sequence);
  board_.decide(request, vote(board_.await_votes(request, outcome.aborted)), outcome.aborted);
}

bool RankSequencer::check() {
  constexpr auto nobody = std::numeric_limits<std::int64_t>::max();
  const auto mine = static_cast<std::int64_t>(number_);
  std::vector<std::int64_t> values{mine, -mine, board_.stopping() ? collectives_->rank() : nobody};
  collectives_->all_reduce_min(values, options_.timeout);
  if (values[0] != mine || values[1] != -mine) {
    throw Error(ErrorCode::internal, "the ranks are not at the same message");
  }
  if (values[2] == nobody) return true;
  board_.fail("rank " + std::to_string(values[2]) + " has ended the group");
  return false;
}

std::vector<bool> RankSequencer::vote(std::vector<std::int64_t> votes) {
  if (!votes.empty()) collectives_->all_reduce_min(votes, options_.timeout);
  std::vector<bool> hits;
  hits.reserve(votes.size());
  for (const auto least : votes) hits.push_back(least != 0);
  return hits;
}

}  // namespace vitrove
