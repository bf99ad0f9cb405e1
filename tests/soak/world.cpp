#include "soak/world.h"

#include <algorithm>

#include "vitrove/file_store.h"

namespace vitrove::soak {
namespace {

constexpr std::uint64_t MiB = std::uint64_t{1} << 20;

Item make_item(Picture picture) {
  auto golden = testing::golden_bytes(picture);
  return {std::move(picture), std::move(golden)};
}

// One of them is larger than the whole pool.
std::vector<Item> make_items() {
  std::vector<Item> made;
  for (std::size_t number = 0; number < World::items; ++number) {
    Picture picture = testing::picture(static_cast<int>(number),
                                       1 + static_cast<std::uint32_t>(number * 37 % 160));
    if (number == 0) picture.rows = testing::in_pages(World::pool_pages + 1);
    if (number % 5 == 1) picture.model = "other";
    made.push_back(make_item(std::move(picture)));
  }
  return made;
}

std::vector<Item> make_twins() {
  std::vector<Item> made;
  for (std::size_t number = 0; number < World::twins; ++number) {
    made.push_back(make_item(testing::picture(10'000 + static_cast<int>(number), 20)));
  }
  return made;
}

ControllerOptions controller_options(const std::string& policy, WritePolicy writes) {
  ControllerOptions options = testing::small_pool(World::pool_pages);
  options.eviction_policy = policy;
  options.write_policy = writes;
  // Often enough that puts wait, are sent, and are overtaken by flushes between two quiet points.
  options.write_behind_delay = std::chrono::milliseconds(100);
  options.modality_shares = {{Modality::audio, 0.1, 1}};  // no sound comes: the pool is smaller
  options.claim_ttl = std::chrono::milliseconds(300);
  options.pool.poison_on_free = true;  // a reader without a pin is found out
  options.max_eviction_batch = 3;
  // Short, so that stores that hang are given up and tried again many times a minute.
  options.store_timeout = std::chrono::milliseconds(20);
  options.put_timeout = std::chrono::milliseconds(200);
  options.breaker_faults = 5;
  options.breaker_pause = std::chrono::milliseconds(50);
  options.put_threads = 2;
  options.max_pending_put_bytes = 4 * MiB;
  return options;
}

}  // namespace

World::World(const std::string& policy, WritePolicy writes)
    : near_(std::make_shared<FaultyStore>(make_memory_store({.capacity = 3 * MiB}))),
      far_(std::make_shared<FaultyStore>(
          make_file_store({.root = directory_.path(), .capacity = 16 * MiB}))),
      items_(make_items()),
      twins_(make_twins()),
      cache_(std::make_unique<EmbeddingCacheController>(
          controller_options(policy, writes),
          std::vector<std::shared_ptr<EmbeddingStore>>{near_, far_})) {}

void World::check(const EmbeddingView& view, const Item& item) {
  const auto& picture = item.picture;
  require(static_cast<bool>(view), picture.name + " has no view");
  require(view.rows() == picture.rows && view.dim() == testing::dim,
          picture.name + " has another shape");
  require(view.side_data() == picture.side(), picture.name + " has foreign side data");
  std::size_t at = 0;
  for (const auto& run : view.runs()) {
    require(run.size() <= item.golden.size() - at &&
                std::equal(run.begin(), run.end(),
                           item.golden.begin() + static_cast<std::ptrdiff_t>(at)),
            picture.name + " has wrong rows");
    at += run.size();
  }
  require(at == item.golden.size(), picture.name + " has too few rows");
  ++tally_.views_checked;
}

}  // namespace vitrove::soak
