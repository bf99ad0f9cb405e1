#include "cli/suggestion.h"

#include <algorithm>
#include <vector>

namespace vitrove::cli {
namespace {

constexpr std::size_t longest = 64;  // names of ours are shorter

// Letters to insert, leave out, change or swap with their neighbour.
std::size_t mistakes_between(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + change});
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> names) {
  if (word.empty() || word.size() > longest) return {};
  std::size_t fewest = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::string best;
  for (const std::string& name : names) {
    const std::size_t mistakes = mistakes_between(word, name);
    if (mistakes >= fewest) continue;
    fewest = mistakes;
    best = name;
  }
  return best;
}

}  // namespace vitrove::cli
