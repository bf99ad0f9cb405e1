// The one thread that talks to the other ranks. Rank 0's says what its board has to say; the
// others' listen, and enter a vote when they are told to: so all ranks make the same calls in one
// order.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "ranks/rank_board.h"
#include "ranks/rank_loader.h"
#include "vitrove/collectives.h"

namespace vitrove {

class RankSequencer {
 public:
  RankSequencer(std::unique_ptr<Collectives> collectives, const RankOptions& options,
                RankBoard& board, RankLoader& loader);
  // board.stop() first. The others learn of it with the next beat; ends when they have.
  ~RankSequencer();
  RankSequencer(const RankSequencer&) = delete;
  RankSequencer& operator=(const RankSequencer&) = delete;

  // Poisons the group: this rank is out, and the others notice.
  void fail(const std::string& reason) noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  void run() noexcept;
  void lead();
  void follow();

  // --- of rank 0 ---
  void say(MessageKind kind, std::uint64_t sequence = 0, std::vector<std::byte> body = {});
  void say_stop();
  void say_plan(const RankRequestPtr& request);
  void say_outcome(const RankRequestPtr& request);

  // --- of the others ---
  MessageHeader hear(std::vector<std::byte>& body);
  void heard_plan(const MessageHeader& header, const std::vector<std::byte>& body);
  void heard_outcome(const MessageHeader& header, const std::vector<std::byte>& body);
  void heard_vote(const MessageHeader& header, const std::vector<std::byte>& body);

  // False when a rank leaves: the board is told who, and rank 0 ends the group.
  bool check();
  std::vector<bool> vote(std::vector<std::int64_t> votes);

  const std::unique_ptr<Collectives> collectives_;
  const RankOptions options_;
  RankBoard& board_;
  RankLoader& loader_;
  std::uint64_t number_ = 0;
  Clock::time_point beat_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace vitrove
