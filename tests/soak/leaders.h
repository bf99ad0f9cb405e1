// Who encodes what: two callers who are asked to encode the same key at the same time are one
// encode too many, unless a flush or a removal came between them, which takes the key from the
// first.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "soak/verdict.h"

namespace vitrove::soak {

class Leaders {
 public:
  explicit Leaders(std::size_t items) : marks_(items) {}

  // Around whatever takes fills away from their leaders.
  class Disturbance {
   public:
    explicit Disturbance(Leaders& leaders) : leaders_(leaders) { ++leaders_.begun_; }
    ~Disturbance() { ++leaders_.ended_; }
    Disturbance(const Disturbance&) = delete;
    Disturbance& operator=(const Disturbance&) = delete;

   private:
    Leaders& leaders_;
  };

  // Ask before acquire(): nothing while somebody disturbs, since a fill made meanwhile may be
  // taken away without notice. Never zero, which stands for nobody known.
  std::uint64_t moment() const {
    const std::uint64_t ended = ended_;
    return begun_ == ended ? ended + 1 : 0;
  }

  // A FillTicket of an acquire() begun at `asked` is ours.
  void begin(std::size_t item, std::uint64_t asked) {
    const std::uint64_t before = marks_[item].exchange(asked);
    require(before == 0 || before != begun_ + 1,
            "two callers were asked to encode item " + std::to_string(item) + " at once");
  }
  // Before the ticket is published or let go: from then on somebody else may lead.
  void end(std::size_t item) { marks_[item] = 0; }

 private:
  std::vector<std::atomic<std::uint64_t>> marks_;
  std::atomic<std::uint64_t> begun_{0};
  std::atomic<std::uint64_t> ended_{0};
};

}  // namespace vitrove::soak
