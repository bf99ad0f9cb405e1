#include "cache/eviction_plan.h"

#include <algorithm>

namespace vitrove {
namespace {

// Neighbouring open blocks, [first, last) in the list of blocks.
struct Stretch {
  std::size_t first = 0;
  std::size_t last = 0;
  std::uint64_t pages = 0;
};

class Planner {
 public:
  Planner(std::span<const PageBlock> blocks, const PayloadNeed& need, std::uint64_t page_bytes,
          const std::function<bool(std::uint32_t)>& evictable)
      : blocks_(blocks), need_(need), page_bytes_(page_bytes) {
    Stretch open;
    for (std::size_t at = 0; at < blocks.size(); ++at) {
      const PageBlock& block = blocks[at];
      const bool is_open =
          block.free || (block.owner != PageBlock::no_owner && evictable(block.owner));
      if (is_open) {
        if (open.pages == 0) open.first = at;
        open.pages += block.run.count;
        open.last = at + 1;
      } else if (open.pages > 0) {
        stretches_.push_back(std::exchange(open, {}));
      }
    }
    if (open.pages > 0) stretches_.push_back(open);
    std::ranges::sort(stretches_, std::ranges::greater{}, &Stretch::pages);
  }

  std::optional<std::vector<std::uint32_t>> plan() const {
    if (const auto window = cheapest_window()) return owners({&*window, 1});
    for (std::size_t count = 1; count <= stretches_.size(); ++count) {
      const auto longest = std::span(stretches_).first(count);
      if (holds(longest)) return owners(longest);
    }
    return std::nullopt;
  }

 private:
  // The fewest pages of entries that make one run for everything. It is enough to look at windows
  // that start with a block: a free block in front costs nothing.
  std::optional<Stretch> cheapest_window() const {
    const std::uint64_t wanted = (need_.bytes() + page_bytes_ - 1) / page_bytes_;
    std::optional<Stretch> best;
    std::uint64_t best_cost = 0;
    for (const Stretch& stretch : stretches_) {
      if (stretch.pages < wanted) break;
      Stretch window{stretch.first, stretch.first, 0};
      std::uint64_t cost = 0;
      for (; window.first < stretch.last; ++window.first) {
        while (window.pages < wanted && window.last < stretch.last) {
          window.pages += blocks_[window.last].run.count;
          cost += cost_of(window.last++);
        }
        if (window.pages < wanted) break;
        if (!best || cost < best_cost) {
          best = window;
          best_cost = cost;
        }
        window.pages -= blocks_[window.first].run.count;
        cost -= cost_of(window.first);
      }
    }
    return best;
  }

  // As the allocator counts: whole rows in every run, the tail where it costs fewest rows.
  bool holds(std::span<const Stretch> stretches) const {
    const auto rows_in = [&](std::uint64_t bytes) { return bytes / need_.row_bytes; };
    std::uint64_t rows = 0;
    std::optional<std::uint64_t> tail_costs;
    for (const Stretch& stretch : stretches) {
      const std::uint64_t bytes = stretch.pages * page_bytes_;
      rows += rows_in(bytes);
      if (bytes < need_.tail_bytes) continue;
      const std::uint64_t costs = rows_in(bytes) - rows_in(bytes - need_.tail_bytes);
      tail_costs = std::min(costs, tail_costs.value_or(costs));
    }
    return tail_costs && rows - *tail_costs >= need_.rows;
  }

  std::uint64_t cost_of(std::size_t block) const {
    return blocks_[block].free ? 0 : blocks_[block].run.count;
  }

  std::vector<std::uint32_t> owners(std::span<const Stretch> stretches) const {
    std::vector<std::uint32_t> owners;
    for (const Stretch& stretch : stretches) {
      for (std::size_t at = stretch.first; at < stretch.last; ++at) {
        if (!blocks_[at].free) owners.push_back(blocks_[at].owner);
      }
    }
    std::ranges::sort(owners);
    owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
    return owners;
  }

  std::span<const PageBlock> blocks_;
  const PayloadNeed need_;
  const std::uint64_t page_bytes_;
  std::vector<Stretch> stretches_;  // longest first
};

}  // namespace

std::optional<std::vector<std::uint32_t>> plan_eviction(
    std::span<const PageBlock> blocks, const PayloadNeed& need, std::uint64_t page_bytes,
    const std::function<bool(std::uint32_t owner)>& evictable) {
  return Planner(blocks, need, page_bytes, evictable).plan();
}

}  // namespace vitrove
