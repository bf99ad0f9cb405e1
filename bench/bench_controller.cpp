// The hit path: lookup + pin + view + release, beside a bare lookup of the same keys in a flat
// table and in std::unordered_map, on one thread and on two; beside SGLang's own controller, which
// also inserts with eviction; and beside plain memcpy. Instructions a hit are counted by callgrind.
//
//   --entries N           entries of the large table (default 1000000); each takes one 4 KiB page
//   --sglang-python PATH  an interpreter that has SGLang (scripts/setup_sglang.sh); else that side
//                         is left out
//   --count-hits N        only fills a cache of --entries and looks up N of them, for callgrind
//   --policy NAME         of --count-hits: the eviction policy; "none" runs the loop alone
//   --by-request yes      of --count-hits: keys of a request together
//
// Keys come in random order, each thread in an order of its own. Both sides read the keys from one
// contiguous list, so that fetching the key costs neither a cache miss.
//
// In a large table a lookup waits for memory, and how long depends on what is known beforehand:
//
//   ..._request   a request knows its keys (16 here): ours gets them together, and the bare lookup
//                 fetches their cells beforehand as well. ..._acquire is the same through what a
//                 server calls, who has to be told of the misses as well.
//   ..._in_turn   one lookup alone: neither side can begin one before it has the last one's result.
//   no suffix     ours gets one key a call, and the bare lookup is given all of them: how much it
//                 makes of that differs from host to host (a ratio of 1.2 on one, 6 on the next).
//
// `..._beside_inserts` shows that nothing stops readers: hits by the clock on the wall, so that
// waiting counts, while another thread inserts as fast as it can and evicts one entry each time.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "coprocess.h"
#include "harness.h"
#include "vitrove/embedding_cache_controller.h"

namespace vitrove::bench {
namespace {

constexpr std::uint32_t dim = 16;
constexpr std::size_t keys_a_request = 16;
constexpr std::uint64_t min_lookups = 2'000'000;

EmbeddingKey key_number(std::uint64_t number) {
  return {sha256("bench/" + std::to_string(number))};
}

ControllerOptions pool_of(std::uint64_t entries) {
  ControllerOptions options;
  options.pool.page_bytes = 4096;
  options.pool.pool_bytes = (entries + 64) * options.pool.page_bytes;
  options.pool.staging_pages = 1;
  options.pool.header_slots = 1;
  return options;
}

using Keys = std::vector<EmbeddingKey>;

template <typename Find>
void look_up(const Keys& order, std::uint64_t lookups, Find find) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0, at = 0; i < lookups; ++i) {
    sum += find(order[at]);
    if (++at == order.size()) at = 0;
  }
  keep(sum);
}

template <typename Ask>
void for_each_request(const Keys& order, std::uint64_t lookups, Ask ask) {
  for (std::uint64_t done = 0, at = 0; done < lookups; done += keys_a_request) {
    if (at + keys_a_request > order.size()) at = 0;
    ask(std::span(order).subspan(at, keys_a_request));
    at += keys_a_request;
  }
}

// `find` answers something below 2^63, so that the sum below is the next place; the processor has
// to wait for it all the same.
template <typename Find>
void look_up_in_turn(const Keys& order, std::uint64_t lookups, Find find) {
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < lookups; ++i) {
    at += 1 + (find(order[at]) >> 63);
    if (at == order.size()) at = 0;
  }
  keep(at);
}

// A controller full of entries of one row.
class Cache {
 public:
  explicit Cache(std::uint64_t entries) : Cache(pool_of(entries), entries) {}
  Cache(const ControllerOptions& options, std::uint64_t entries) : controller_(options, {}) {
    keys_.reserve(entries);
    for (std::uint64_t i = 0; i < entries; ++i) {
      keys_.push_back(key_number(i));
      insert(keys_.back());
    }
  }

  const Keys& keys() const { return keys_; }
  std::uint64_t evictions() const { return controller_.stats().evictions_space; }

  EmbeddingView insert(const EmbeddingKey& key) {
    ValueExpectation item = expectation();
    item.key = key;
    auto answers = controller_.acquire({&item, 1}, {});
    return std::get<FillTicket>(answers[0]).publish({std::as_bytes(std::span(row_)), 1, {}, {}});
  }
  // They stay while somebody holds this.
  std::vector<EmbeddingView> pin_all() {
    std::vector<EmbeddingView> views;
    views.reserve(keys_.size());
    for (const EmbeddingKey& key : keys_) views.push_back(controller_.peek(key));
    return views;
  }

  // Of an entry that is there.
  std::uint64_t hit_one(const EmbeddingKey& key) {
    EmbeddingView view = controller_.try_get(key);
    const auto address = reinterpret_cast<std::uintptr_t>(view.runs()[0].data());
    view.release();
    return address;
  }
  void hit(const Keys& order, std::uint64_t lookups) {
    look_up(order, lookups, [this](const EmbeddingKey& key) { return hit_one(key); });
  }
  // Requests of so many keys each, all of which are there.
  void hit_requests(const Keys& order, std::uint64_t lookups) {
    std::array<EmbeddingView, keys_a_request> views;
    std::uint64_t sum = 0;
    for_each_request(order, lookups, [&](std::span<const EmbeddingKey> keys) {
      controller_.try_get(keys, views);
      for (EmbeddingView& view : views) {
        sum += reinterpret_cast<std::uintptr_t>(view.runs()[0].data());
        view.release();
      }
    });
    keep(sum);
  }
  // The same through what a server calls, who has to be told of the misses too.
  void acquire_requests(const Keys& order, std::uint64_t lookups) {
    std::array<ValueExpectation, keys_a_request> items;
    std::ranges::fill(items, expectation());
    const RequestContext context;
    std::uint64_t sum = 0;
    for_each_request(order, lookups, [&](std::span<const EmbeddingKey> keys) {
      for (std::size_t i = 0; i < keys.size(); ++i) items[i].key = keys[i];
      for (Acquired& answer : controller_.acquire(items, context)) {
        EmbeddingView& view = std::get<Hit>(answer).view;
        sum += reinterpret_cast<std::uintptr_t>(view.runs()[0].data());
        view.release();
      }
    });
    keep(sum);
  }
  void hit_in_turn(const Keys& order, std::uint64_t lookups) {
    look_up_in_turn(order, lookups, [this](const EmbeddingKey& key) { return hit_one(key); });
  }

 private:
  static ValueExpectation expectation() {
    ValueExpectation item;
    item.dim = dim;
    return item;
  }

  const std::vector<float> row_ = std::vector<float>(dim, 0.5F);
  EmbeddingCacheController controller_;
  Keys keys_;
};

// What a lookup costs at the very least: one probe, one comparison, nothing held.
class FlatTable {
 public:
  explicit FlatTable(const Keys& keys) : cells_(std::bit_ceil(keys.size() * 2)) {
    for (std::uint64_t i = 0; i < keys.size(); ++i) {
      std::size_t at = place_of(keys[i]);
      while (cells_[at].value != 0) at = (at + 1) & (cells_.size() - 1);
      cells_[at] = {keys[i], i + 1};
    }
  }

  void prefetch(const EmbeddingKey& key) const { __builtin_prefetch(&cells_[place_of(key)]); }
  std::uint64_t find(const EmbeddingKey& key) const {
    for (std::size_t at = place_of(key); cells_[at].value != 0;
         at = (at + 1) & (cells_.size() - 1)) {
      if (std::memcmp(&cells_[at].key, &key, sizeof key) == 0) return cells_[at].value;
    }
    return 0;
  }

 private:
  struct Cell {
    EmbeddingKey key;
    std::uint64_t value = 0;
  };
  std::size_t place_of(const EmbeddingKey& key) const {
    return DigestHash{}(key.digest) & (cells_.size() - 1);
  }
  std::vector<Cell> cells_;
};

Keys shuffled(Keys keys, unsigned seed) {
  std::shuffle(keys.begin(), keys.end(), std::mt19937_64(seed));
  return keys;
}

std::uint64_t lookups_of(const Keys& keys) {
  return std::max<std::uint64_t>(min_lookups, keys.size());
}

// User-space instructions of `body`; nothing where the machine does not count them.
std::optional<std::uint64_t> instructions_of(const std::function<void()>& body) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = PERF_COUNT_HW_INSTRUCTIONS;
  attributes.disabled = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  const auto counter = static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
  if (counter < 0) return std::nullopt;
  ioctl(counter, PERF_EVENT_IOC_ENABLE, 0);
  body();
  ioctl(counter, PERF_EVENT_IOC_DISABLE, 0);
  std::uint64_t count = 0;
  const bool counted = read(counter, &count, sizeof count) == sizeof count && count > 0;
  close(counter);
  return counted ? std::optional(count) : std::nullopt;
}

using Hits = void (Cache::*)(const Keys& order, std::uint64_t lookups);

// Million hits a second, with every thread on an order of its own.
double throughput(Cache& cache, Hits hits, const std::vector<Keys>& orders, std::size_t threads,
                  std::uint64_t lookups) {
  std::atomic<std::size_t> ready = 0;
  std::atomic<bool> go = false;
  std::vector<std::jthread> workers;
  for (std::size_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      ++ready;
      go.wait(false);
      (cache.*hits)(orders[t], lookups);
    });
  }
  while (ready < threads) std::this_thread::yield();
  const double seconds = seconds_of([&] {
    go = true;
    go.notify_all();
    workers.clear();
  });
  return static_cast<double>(lookups * threads) / seconds / 1e6;
}

// What is promised at a size, beside the scaling on two threads.
struct Promise {
  double scaling = 0;
  std::optional<Target> against_flat = {};  // in the cache a bare lookup costs next to nothing
};

void measure(Harness& harness, const std::string& size, std::uint64_t entries,
             const Promise& promise) {
  const std::string hit = "local_hit_" + size;
  const std::string map = hit + "_map";
  const std::string request = hit + "_request";
  const std::string request_within = request + "_absolute";
  const std::string acquire = hit + "_acquire";
  const std::string in_turn = hit + "_in_turn";
  const std::string within = hit + "_absolute";
  const std::string instructions = hit + "_instructions";
  const std::string threads = hit + "_two_threads";
  const std::string request_threads = request + "_two_threads";
  const std::vector<std::string> all{hit, request_within, request,      acquire, in_turn,
                                     map, within,         instructions, threads, request_threads};
  if (std::ranges::none_of(all, [&](const auto& name) { return harness.wants(name); })) return;

  Cache cache(entries);
  const std::vector<Keys> orders{shuffled(cache.keys(), 1), shuffled(cache.keys(), 2)};
  const std::uint64_t lookups = lookups_of(cache.keys());
  const auto each = [&](const auto& body) {
    return processor_seconds_of(body) * 1e9 / static_cast<double>(lookups);
  };
  const auto ours = [&] { return each([&] { cache.hit(orders[0], lookups); }); };
  const auto bare = [&](const auto& find) {
    return each([&] { look_up(orders[0], lookups, find); });
  };
  {
    const FlatTable flat(cache.keys());
    harness.compare({hit, "ns", "bare flat table", promise.against_flat}, ours,
                    [&] { return bare([&](const EmbeddingKey& key) { return flat.find(key); }); });
    const auto bare_requests = [&] {
      return each([&] {
        std::uint64_t sum = 0;
        for_each_request(orders[0], lookups, [&](std::span<const EmbeddingKey> keys) {
          for (const EmbeddingKey& key : keys) flat.prefetch(key);
          for (const EmbeddingKey& key : keys) sum += flat.find(key);
        });
        keep(sum);
      });
    };
    const auto requests = [&] { return each([&] { cache.hit_requests(orders[0], lookups); }); };
    harness.compare({request, "ns", "bare flat table", promise.against_flat}, requests,
                    bare_requests);
    harness.measure({request_within, "ns", {}, ours_at_most(250)}, requests);
    harness.compare(
        {acquire, "ns", "bare flat table"},
        [&] { return each([&] { cache.acquire_requests(orders[0], lookups); }); }, bare_requests);
    harness.compare(
        {in_turn, "ns", "bare flat table", promise.against_flat},
        [&] { return each([&] { cache.hit_in_turn(orders[0], lookups); }); },
        [&] {
          return each([&] {
            look_up_in_turn(orders[0], lookups,
                            [&](const EmbeddingKey& key) { return flat.find(key); });
          });
        });
  }
  if (harness.wants(map)) {
    std::unordered_map<EmbeddingKey, std::uint64_t> table;
    for (std::uint64_t i = 0; i < entries; ++i) table.emplace(cache.keys()[i], i + 1);
    harness.compare({map, "ns", "std::unordered_map", ratio_at_most(3)}, ours, [&] {
      return bare([&](const EmbeddingKey& key) { return table.find(key)->second; });
    });
  }
  harness.measure({within, "ns", {}, ours_at_most(250)}, ours);
  if (const auto count = instructions_of([&] { cache.hit(orders[0], lookups); })) {
    harness.record({instructions, "instructions", {}, ours_at_most(200)},
                   static_cast<double>(*count) / static_cast<double>(lookups));
  }
  const auto scaling = [&](const std::string& name, Hits hits, std::optional<Target> target) {
    harness.compare(
        {name, "million/s", "one thread", target},
        [&] { return throughput(cache, hits, orders, 2, lookups); },
        [&] { return throughput(cache, hits, orders, 1, lookups); });
  };
  scaling(threads, &Cache::hit, ratio_at_least(promise.scaling));
  scaling(request_threads, &Cache::hit_requests, ratio_at_least(promise.scaling));
}

// Of entries that are in use, in a pool where little else is left to evict.
void measure_hits_beside_inserts(Harness& harness) {
  const std::string name = "local_hit_10k_beside_inserts";
  if (!harness.wants(name)) return;
  constexpr std::uint64_t in_use = 10'000;
  Cache cache(pool_of(in_use + 1024), in_use);
  const auto pins = cache.pin_all();
  const auto order = shuffled(cache.keys(), 1);
  std::uint64_t inserted = in_use;
  const auto hits = [&] {
    return nanoseconds_each(min_lookups, [&] { cache.hit(order, min_lookups); });
  };
  harness.compare(
      {name, "ns", "hits alone"},
      [&] {
        const std::uint64_t before = cache.evictions();
        const std::jthread inserter([&](const std::stop_token& stop) {
          while (!stop.stop_requested()) cache.insert(key_number(inserted++));
        });
        while (cache.evictions() == before) std::this_thread::yield();
        return hits();
      },
      hits);
}

// SGLang's controller in a process of its own.
Coprocess start_sglang(const std::string& python) {
  return Coprocess({python, std::string(VITROVE_BENCH_SOURCE_DIR) + "/sglang_cache.py"});
}

double millions(double nanoseconds) { return 1e3 / nanoseconds; }

void measure_hits_beside_sglang(Harness& harness, const std::string& size, std::uint64_t entries,
                                const std::string& python) {
  const std::string name = "local_hit_" + size + "_sglang";
  if (python.empty() || !harness.wants(name)) return;
  constexpr std::uint64_t lookups_of_theirs = 30'000;  // a third of a second
  Cache cache(entries);
  const auto order = shuffled(cache.keys(), 1);
  const std::uint64_t lookups = lookups_of(cache.keys());
  Coprocess sglang = start_sglang(python);
  sglang.ask("fill " + std::to_string(entries) + " " + std::to_string(dim) + " 4096");
  harness.compare(
      {name, "million/s", "SGLang's controller", ratio_at_least(20)},
      [&] {
        return millions(processor_seconds_of([&] { cache.hit(order, lookups); }) * 1e9 /
                        static_cast<double>(lookups));
      },
      [&] { return millions(sglang.ask("hit " + std::to_string(lookups_of_theirs))); });
}

// A pool that is full of entries of one page: each insertion evicts one.
class FullCache {
 public:
  FullCache(std::uint64_t pages, std::uint32_t rows, std::uint32_t row_dim)
      : rows_(rows),
        dim_(row_dim),
        values_(std::size_t{rows} * row_dim, 0.5F),
        controller_(options(pages, values_.size() * sizeof(float))) {
    insert(pages + 1);
  }

  // Nanoseconds each.
  double insert(std::uint64_t count) {
    std::vector<ValueExpectation> items(count);
    for (ValueExpectation& item : items) {
      item.key = key_number(inserted_++);
      item.dim = dim_;
    }
    const RequestContext context;
    const double seconds = processor_seconds_of([&] {
      for (const ValueExpectation& item : items) {
        auto answers = controller_.acquire({&item, 1}, context);
        std::get<FillTicket>(answers[0])
            .publish({std::as_bytes(std::span(values_)), rows_, {}, {}});
      }
    });
    return seconds * 1e9 / static_cast<double>(count);
  }

  // The same bytes into the same memory, and nothing else.
  double copy(std::uint64_t count) {
    const std::size_t bytes = values_.size() * sizeof(float);
    if (plain_.empty()) plain_.resize(controller_.stats().pool_bytes);
    const double seconds = processor_seconds_of([&] {
      for (std::uint64_t i = 0; i < count; ++i) {
        std::memcpy(plain_.data() + (i * bytes) % plain_.size(), values_.data(), bytes);
        keep(plain_.data());
      }
    });
    return seconds * 1e9 / static_cast<double>(count);
  }

 private:
  static ControllerOptions options(std::uint64_t pages, std::uint64_t page_bytes) {
    ControllerOptions options = pool_of(0);
    options.pool.page_bytes = page_bytes;
    options.pool.pool_bytes = pages * page_bytes;
    return options;
  }

  std::uint32_t rows_;
  std::uint32_t dim_;
  std::vector<float> values_;
  EmbeddingCacheController controller_;
  std::uint64_t inserted_ = 0;
  std::vector<std::byte> plain_;
};

void measure_inserts(Harness& harness, const std::string& size, std::uint64_t pages,
                     std::uint32_t rows, const std::string& python) {
  constexpr std::uint32_t row_dim = 1024;
  constexpr std::uint64_t count = 1000;
  const std::string name = "insert_evict_" + size;
  if (!harness.wants(name + "_memcpy") && !harness.wants(name + "_sglang")) return;
  FullCache cache(pages, rows, row_dim);
  const auto ours = [&] { return millions(cache.insert(count)); };
  harness.compare({name + "_memcpy", "million/s", "memcpy of the rows"}, ours,
                  [&] { return millions(cache.copy(count)); });
  if (python.empty() || !harness.wants(name + "_sglang")) return;
  Coprocess sglang = start_sglang(python);
  sglang.ask("full " + std::to_string(pages) + " " + std::to_string(rows) + " " +
             std::to_string(row_dim) + " " + std::to_string(rows * row_dim * sizeof(float)));
  harness.compare({name + "_sglang", "million/s", "SGLang's controller", ratio_at_least(1)}, ours,
                  [&] { return millions(sglang.ask("insert " + std::to_string(count))); });
}

constexpr std::string_view no_policy = "none";

// Who looks up, in the runs that callgrind counts.
enum class Asks : std::uint8_t { key_by_key, by_request };

// All instructions of a run of this program that looks up so many; nothing without valgrind.
std::optional<double> instructions_of_run(const std::string& policy, Asks asks,
                                          std::uint64_t lookups) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "valgrind --tool=callgrind --callgrind-out-file=/dev/null '" + self +
                              "' --entries 1000 --policy " + policy + " --count-hits " +
                              std::to_string(lookups) +
                              (asks == Asks::by_request ? " --by-request yes" : "") + " 2>&1";
  std::FILE* output = popen(command.c_str(), "r");
  if (output == nullptr) return std::nullopt;
  std::optional<double> count;
  char line[256];
  while (std::fgets(line, sizeof line, output) != nullptr) {
    const char* const found = std::strstr(line, "Collected : ");
    if (found != nullptr) count = std::atof(found + std::strlen("Collected : "));
  }
  pclose(output);
  return count;
}

// What one lookup more costs: the difference of two runs leaves out all that comes before.
std::optional<double> instructions_each(const std::string& policy, Asks asks) {
  constexpr std::uint64_t fewer = 100'000, more = 300'000;
  const auto low = instructions_of_run(policy, asks, fewer);
  const auto high = instructions_of_run(policy, asks, more);
  if (!low || !high) return std::nullopt;
  return (*high - *low) / (more - fewer);
}

// The figure of a hit is with the loop around it; that of the loop alone stands beside it.
void count_instructions(Harness& harness) {
  const std::string name = "local_hit_callgrind_";
  const auto count = [&](std::string_view policy, Asks asks, std::optional<double> loop,
                         std::optional<Target> target) -> std::optional<double> {
    const std::string what =
        name + std::string(policy) + (asks == Asks::by_request ? "_request" : "");
    if (!harness.wants(what)) return std::nullopt;
    const auto each = instructions_each(std::string(policy), asks);
    if (!each) {
      std::fprintf(stderr, "note: %s needs valgrind: ./run setup check\n", what.c_str());
      return std::nullopt;
    }
    harness.record({what, "instructions", loop ? "the loop alone" : "", target}, *each, loop);
    return each;
  };
  const auto loop = count(no_policy, Asks::key_by_key, {}, {});
  for (const std::string_view policy : eviction_policies()) {
    for (const Asks asks : {Asks::key_by_key, Asks::by_request}) {
      count(policy, asks, loop, ours_at_most(200));
    }
  }
}

void only_hit(std::uint64_t entries, std::uint64_t lookups, const std::string& policy, Asks asks) {
  ControllerOptions options = pool_of(entries);
  if (policy != no_policy) options.eviction_policy = policy;
  Cache cache(options, entries);
  const auto order = shuffled(cache.keys(), 1);
  if (policy != no_policy && asks == Asks::by_request) return cache.hit_requests(order, lookups);
  if (policy != no_policy) return cache.hit(order, lookups);
  look_up(order, lookups, [](const EmbeddingKey& key) {
    keep(&key);
    return std::uint64_t{0};
  });
}

}  // namespace
}  // namespace vitrove::bench

int main(int argc, char** argv) {
  using namespace vitrove::bench;
  Harness harness(argc, argv,
                  {"--entries", "--sglang-python", "--count-hits", "--policy", "--by-request"});
  const std::uint64_t entries = std::stoull(harness.option("--entries", "1000000"));
  if (entries < vitrove::bench::keys_a_request) {
    std::fprintf(stderr, "error: --entries has to be at least 16, the keys of a request\n");
    return 2;
  }
  const std::string python = harness.option("--sglang-python", "");
  if (const auto lookups = std::stoull(harness.option("--count-hits", "0")); lookups > 0) {
    only_hit(entries, lookups,
             harness.option("--policy", vitrove::ControllerOptions{}.eviction_policy),
             harness.option("--by-request", "no") == "yes" ? Asks::by_request : Asks::key_by_key);
    return 0;
  }
  measure(harness, "10k", 10'000, {0.85});
  measure(harness, "1m", entries, {1.5, ratio_at_most(3)});
  measure_hits_beside_inserts(harness);
  count_instructions(harness);
  measure_hits_beside_sglang(harness, "1m", entries, python);
  measure_inserts(harness, "4KiB", 1024, 1, python);
  measure_inserts(harness, "256KiB", 256, 64, python);
  return harness.finish();
}
