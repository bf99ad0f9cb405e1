// The cache under test, what lies behind it, and all that is known of it: the real controller over
// a memory store and a file store, both wrapped so that they can misbehave.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "contract/temporary_directory.h"
#include "soak/leaders.h"
#include "unit/cache/support.h"

namespace vitrove::soak {

using testing::FaultyStore;
using testing::Picture;

// An item with the only bytes that a hit of it may have.
struct Item {
  Picture picture;
  std::vector<std::byte> golden;
};

// What clients did, for the progress lines.
struct Tally {
  std::atomic<std::uint64_t> operations{0}, views_checked{0}, encodes{0}, left{0};
};

class World {
 public:
  static constexpr std::uint32_t pool_pages = 1024;  // the items need about twice as much
  static constexpr std::size_t items = 400;
  static constexpr std::size_t twins = 4;  // pairs of files with the same features

  World(const std::string& policy, WritePolicy writes);

  EmbeddingCacheController& cache() { return *cache_; }
  FaultyStore& near() { return *near_; }
  FaultyStore& far() { return *far_; }
  const Item& item(std::size_t number) const { return items_[number]; }
  // Served under two keys; both lead to the rows of the picture.
  const Item& twin(std::size_t number) const { return twins_[number]; }
  Leaders& leaders() { return leaders_; }
  Tally& tally() { return tally_; }
  Verdict& verdict() { return verdict_; }

  // Whole, of the right shape, and with the right bytes. Throws Broken.
  void check(const EmbeddingView& view, const Item& item);

 private:
  testing::TemporaryDirectory directory_;
  std::shared_ptr<FaultyStore> near_;
  std::shared_ptr<FaultyStore> far_;
  std::vector<Item> items_;
  std::vector<Item> twins_;
  Leaders leaders_{items};
  Tally tally_;
  Verdict verdict_;
  std::unique_ptr<EmbeddingCacheController> cache_;
};

}  // namespace vitrove::soak
