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
  struct Counts {
    std::atomic<std::uint64_t> begun{0};
    std::atomic<std::uint64_t> ended{0};
  };

 public:
  explicit Leaders(std::size_t items) : items_(items) {}

  // Around whatever takes fills away from their leaders: of one item, or of all.
  class Disturbance {
   public:
    explicit Disturbance(Leaders& leaders) : counts_(leaders.all_) { ++counts_.begun; }
    Disturbance(Leaders& leaders, std::size_t item) : counts_(leaders.items_[item].disturbances) {
      ++counts_.begun;
    }
    ~Disturbance() { ++counts_.ended; }
    Disturbance(const Disturbance&) = delete;
    Disturbance& operator=(const Disturbance&) = delete;

   private:
    Counts& counts_;
  };

  // Ask before acquire(): nothing (zero) while somebody disturbs, since a fill made meanwhile may
  // be taken away without notice.
  std::uint64_t moment(std::size_t item) const {
    const std::uint64_t ended = all_.ended + items_[item].disturbances.ended;
    return begun(item) == ended ? ended + 1 : 0;
  }

  // A FillTicket of an acquire() begun at `asked` is ours. Whoever asked before the last
  // disturbance may come here late, and find one who asked after it.
  void begin(std::size_t item, std::uint64_t asked) {
    const std::uint64_t before = items_[item].leader.exchange(asked);
    require(before == 0 || before != asked || asked != begun(item) + 1,
            "two callers were asked to encode item " + std::to_string(item) + " at once");
  }
  // Before the ticket is published or let go: from then on somebody else may lead.
  void end(std::size_t item) { items_[item].leader = 0; }

 private:
  struct Item {
    std::atomic<std::uint64_t> leader{0};  // the moment at which it asked
    Counts disturbances;
  };

  // Counts only grow: equal sums are equal counts.
  std::uint64_t begun(std::size_t item) const {
    return all_.begun + items_[item].disturbances.begun;
  }

  std::vector<Item> items_;
  Counts all_;
};

}  // namespace vitrove::soak
