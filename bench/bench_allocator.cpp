// The page allocator: what an operation costs in a fragmented pool at 90 % occupancy, from a
// thousand pages to a million, beside a textbook allocator of std::set and std::map; and how much
// of the pool real entries waste.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness.h"
#include "vitrove/page_pool.h"

namespace {

using vitrove::PagePool;
using vitrove::PagePoolOptions;
using vitrove::PageRun;
using vitrove::PageRuns;
using vitrove::bench::Harness;
namespace bench = vitrove::bench;

constexpr std::uint64_t small_page = 4096;

std::unique_ptr<PagePool> make_pool(std::uint64_t pages, std::uint64_t page_bytes) {
  PagePoolOptions options;
  options.pool_bytes = pages * page_bytes;
  options.page_bytes = page_bytes;
  options.staging_pages = 0;
  options.header_slots = 0;
  options.poison_on_free = false;
  return std::make_unique<PagePool>(options);
}

// The pool behind the interface that the workload needs. A handle keeps little, so that the table
// of what is held does not push the allocator's own tables out of the cache.
class OurAllocator {
 public:
  struct Handle {
    PageRun run;
    std::uint32_t torn = 0;  // of several runs: 1 + its place in torn_
  };

  explicit OurAllocator(std::uint64_t pages) : pool_(make_pool(pages, small_page)) {}

  std::optional<Handle> allocate(std::uint32_t pages) {
    auto runs = pool_->allocate(pages, small_page);
    if (!runs) return std::nullopt;
    if (runs->segments.size() == 1) return Handle{runs->segments.front().run};
    if (unused_.empty()) {
      unused_.push_back(static_cast<std::uint32_t>(torn_.size()));
      torn_.emplace_back();
    }
    const std::uint32_t at = unused_.back();
    unused_.pop_back();
    torn_[at] = std::move(*runs);
    return Handle{{}, at + 1};
  }

  void release(const Handle& handle) {
    if (handle.torn != 0) {
      pool_->release(torn_[handle.torn - 1]);
      unused_.push_back(handle.torn - 1);
      return;
    }
    PageRuns runs;
    runs.segments.push_back({handle.run, handle.run.count, handle.run.count * small_page});
    pool_->release(runs);
  }

 private:
  std::unique_ptr<PagePool> pool_;
  std::vector<PageRuns> torn_;
  std::vector<std::uint32_t> unused_;
};

// Best fit as a textbook has it: free runs in one tree by address and in one by size.
class TreeAllocator {
 public:
  using Handle = std::pair<std::uint32_t, std::uint32_t>;  // first, count
  explicit TreeAllocator(std::uint64_t pages) { insert(0, static_cast<std::uint32_t>(pages)); }

  std::optional<Handle> allocate(std::uint32_t pages) {
    const auto fit = by_size_.lower_bound({pages, 0});
    if (fit == by_size_.end()) return std::nullopt;
    const auto [count, first] = *fit;
    by_size_.erase(fit);
    by_address_.erase(first);
    if (count > pages) insert(first + pages, count - pages);
    return Handle{first, pages};
  }

  void release(const Handle& handle) {
    auto [first, count] = handle;
    const auto after = by_address_.find(first + count);
    if (after != by_address_.end()) {
      count += after->second;
      erase(after);
    }
    const auto next = by_address_.lower_bound(first);
    if (next != by_address_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == first) {
        first = before->first;
        count += before->second;
        erase(before);
      }
    }
    insert(first, count);
  }

 private:
  using ByAddress = std::map<std::uint32_t, std::uint32_t>;

  void insert(std::uint32_t first, std::uint32_t count) {
    by_address_.emplace(first, count);
    by_size_.emplace(count, first);
  }
  void erase(ByAddress::iterator run) {
    by_size_.erase({run->second, run->first});
    by_address_.erase(run);
  }

  ByAddress by_address_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> by_size_;
};

// A pool that has been in use for long: once filled to the last page with runs of 1 to 16 pages,
// then a tenth of it given back in random order, then aged. A step gives a run back and takes
// another of a new size.
template <class Allocator>
class FragmentedPool {
 public:
  explicit FragmentedPool(std::uint64_t pages) : allocator_(pages) {
    std::uint64_t taken = 0;
    while (taken < pages) {
      const auto size =
          static_cast<std::uint16_t>(std::min<std::uint64_t>(next_size(), pages - taken));
      held_.push_back({*allocator_.allocate(size), size, 0});
      taken += size;
    }
    std::shuffle(held_.begin(), held_.end(), random_);
    while (taken > pages * 9 / 10) {
      allocator_.release(held_.back().handle);
      taken -= held_.back().size;
      held_.pop_back();
    }
    for (int i = 0; i < 20; ++i) round();
  }

  // Nanoseconds an operation (a release or an allocation).
  double run() {
    constexpr std::uint64_t least_operations = 400000;
    std::uint64_t operations = 0;
    double seconds = 0;
    while (operations < least_operations) {
      const auto [more, spent] = round();
      operations += more;
      seconds += spent;
    }
    return seconds * 1e9 / static_cast<double>(operations);
  }

 private:
  static constexpr std::uint32_t largest = 16;

  struct Held {
    typename Allocator::Handle handle;
    std::uint16_t size;
    std::uint16_t next_size;
  };

  std::uint16_t next_size() { return static_cast<std::uint16_t>(1 + random_() % largest); }

  // Replaces every run once, in random order. The order is made before: the table of what is held
  // is then walked from end to end, and its cache misses are not counted as the allocator's.
  std::pair<std::uint64_t, double> round() {
    std::shuffle(held_.begin(), held_.end(), random_);
    for (Held& held : held_) held.next_size = next_size();
    std::uint64_t operations = 0;
    const double seconds = bench::processor_seconds_of([&] {
      for (Held& held : held_) {
        allocator_.release(held.handle);
        auto next = allocator_.allocate(held.next_size);
        operations += 2;
        if (next) {
          held.handle = std::move(*next);
          held.size = held.next_size;
          continue;
        }
        held.handle = *allocator_.allocate(held.size);  // its old place still fits
        ++operations;
      }
    });
    return {operations, seconds};
  }

  std::mt19937 random_{31};
  Allocator allocator_;
  std::vector<Held> held_;
};

void measure_cost(Harness& harness) {
  for (const std::uint64_t pages : {1000, 10000, 100000, 1000000}) {
    const std::string name = "allocator_op_" + std::to_string(pages) + "_pages";
    if (!harness.wants(name)) continue;
    FragmentedPool<OurAllocator> ours(pages);
    FragmentedPool<TreeAllocator> trees(pages);
    harness.compare(
        {name, "ns", "std::set and std::map", bench::ratio_at_most(1)}, [&] { return ours.run(); },
        [&] { return trees.run(); });
  }
  if (!harness.wants("allocator_growth")) return;
  FragmentedPool<OurAllocator> large(1000000);
  FragmentedPool<OurAllocator> small(1000);
  harness.compare(
      {"allocator_growth", "ns", "the same at 1000 pages", bench::ratio_at_most(1.7)},
      [&] { return large.run(); }, [&] { return small.run(); });
}

// A cache that is full and evicts at random, one entry at a time, until the next one fits.
void measure_waste(Harness& harness) {
  if (!harness.wants("pool_waste")) return;
  constexpr std::uint64_t page = 64 * 1024;
  constexpr std::uint64_t pages = 65536;
  constexpr std::uint64_t row_sizes[] = {2048, 2304, 2560, 3072,  4096,  5120,
                                         6144, 7168, 8192, 10240, 16384, 20480};
  const auto pool = make_pool(pages, page);
  std::mt19937 random(37);
  std::uniform_real_distribution<double> log_rows(std::log(64.0), std::log(16384.0));
  std::vector<PageRuns> held;
  double room = 0, bytes = 0, waste_of_entries = 0, taken = 0, runs_of_entries = 0;
  constexpr int entries = 50000;
  for (int i = 0; i < entries; ++i) {
    const auto rows = static_cast<std::uint64_t>(std::exp(log_rows(random)));
    const std::uint64_t row_bytes = row_sizes[random() % std::size(row_sizes)];
    auto runs = pool->allocate(rows, row_bytes, 0, PagePool::preferred_runs);
    while (!runs) {
      std::swap(held[random() % held.size()], held.back());
      pool->release(held.back());
      held.pop_back();
      runs = pool->allocate(rows, row_bytes, 0, PagePool::preferred_runs);
    }
    const double here = static_cast<double>(runs->pages() * page);
    room += here;
    bytes += static_cast<double>(runs->bytes());
    waste_of_entries += 1 - static_cast<double>(runs->bytes()) / here;
    runs_of_entries += static_cast<double>(runs->segments.size());
    taken += 1 - static_cast<double>(pool->free_pages()) / pages;
    held.push_back(std::move(*runs));
  }
  harness.record({"pool_waste_in_all", "%", {}, bench::ours_at_most(0.5)},
                 100 * (1 - bytes / room));
  harness.record({"pool_waste_of_an_entry", "%", {}, bench::ours_at_most(2.5)},
                 100 * waste_of_entries / entries);
  harness.record({"pool_waste_runs_an_entry", "runs", {}, bench::ours_at_most(3)},
                 runs_of_entries / entries);
  harness.record({"pool_waste_occupancy_when_full", "%", {}, bench::ours_at_least(90)},
                 100 * taken / entries);
}

}  // namespace

int main(int argc, char** argv) {
  Harness harness(argc, argv);
  measure_cost(harness);
  measure_waste(harness);
  return harness.finish();
}
