// vitrove bench store URL: what a store gives from here: put, exist and get of values of some
// sizes, as a server would ask for them.

#include <cmath>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/stop_set.h"
#include "cli/store_access.h"
#include "cli/store_advice.h"
#include "cli/store_load.h"
#include "vitrove/embedding_store_factory.h"
#include "vitrove/error.h"
#include "vitrove/units.h"

namespace vitrove::cli {
namespace {

struct BenchStoreArguments {
  std::string store;
  std::vector<std::string> sizes{"64KiB", "1MiB", "8MiB"};
  std::size_t batch = 1;
  std::size_t threads = 1;
  std::size_t count = 0;
  std::chrono::microseconds time{2'000'000};
  std::chrono::microseconds timeout{10'000'000};
  bool json = false;
  bool quiet = false;
};

constexpr LoadOp every_op[] = {LoadOp::put, LoadOp::exist, LoadOp::get};
constexpr std::size_t steps_a_run = 20;  // of the progress bar
constexpr std::uint64_t bytes_a_size = std::uint64_t{256} << 20;
constexpr std::size_t most_values = 4096;

// Ctrl-C and its kin end a run, so that what was put is removed. Blocked from here on in every
// thread, and asked for between two looks at the clock.
class StopSignals {
 public:
  StopSignals() { pthread_sigmask(SIG_BLOCK, &set_, nullptr); }

  bool came() {
    const timespec now{};
    if (number_ == 0) number_ = std::max(sigtimedwait(&set_, nullptr, &now), 0);
    return number_ != 0;
  }
  int number() const { return number_; }

 private:
  const sigset_t set_ = stop_set();
  int number_ = 0;
};

LoadShape shape_of(const BenchStoreArguments& arguments, std::uint64_t value_bytes) {
  LoadShape shape;
  shape.value_bytes = value_bytes;
  shape.batch = arguments.batch;
  shape.threads = arguments.threads;
  shape.time = arguments.time;
  shape.call_timeout = arguments.timeout;
  const std::size_t wanted = arguments.count != 0
                                 ? arguments.count
                                 : std::min<std::size_t>(bytes_a_size / value_bytes, most_values);
  const std::size_t batches = (wanted + shape.batch - 1) / shape.batch;
  shape.count = std::max(batches, shape.threads) * shape.batch;
  return shape;
}

std::vector<std::uint64_t> sizes_of(const BenchStoreArguments& arguments) {
  std::vector<std::uint64_t> sizes;
  for (const std::string& text : arguments.sizes) {
    const std::uint64_t size = parse_bytes(text);
    if (size < StoreLoad::least_value_bytes)
      throw Error(ErrorCode::invalid_argument, "--size " + text + ": at least 16 bytes");
    sizes.push_back(size);
  }
  return sizes;
}

double megabytes_a_second(const LoadFigures& figures, std::uint64_t value_bytes) {
  return static_cast<double>(figures.operations * value_bytes) / 1e6 / figures.seconds;
}

std::string number(double value, const char* format = "%.1f") {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string time_text(double microseconds) {
  return format_duration(std::chrono::microseconds(std::llround(microseconds)));
}

class BenchStore {
 public:
  explicit BenchStore(const BenchStoreArguments& arguments)
      : arguments_(arguments),
        sizes_(sizes_of(arguments)),
        store_(open_store(arguments.store)),
        progress_(sizes_.size() * std::size(every_op) * steps_a_run, arguments.quiet) {}

  int run() {
    check_that_it_works();
    for (const std::uint64_t size : sizes_) {
      if (stop_.came()) break;
      measure(size);
    }
    if (arguments_.json) {
      std::puts(json_line({{"runs", runs_}}).c_str());
    } else {
      table_.print();
    }
    if (!store_->capabilities().can_remove)
      std::fprintf(stderr, "vitrove: this store cannot remove: the values put stay in it\n");
    if (stop_.came()) return 128 + stop_.number();
    return failed_ ? exit_failed : exit_ok;
  }

 private:
  // A first value, put with patience: a store connects in the background.
  void check_that_it_works() {
    LoadShape one;
    one.value_bytes = StoreLoad::least_value_bytes;
    one.call_timeout = arguments_.timeout;
    const LoadFigures figures =
        StoreLoad(*store_, one).run(LoadOp::put, [this](double) { return !stop_.came(); });
    if (figures.failed == 0) return;
    std::string reason = figures.fault;
    const std::string detail = store_->health().detail;
    if (!detail.empty()) reason += "; " + detail;
    const std::string_view advice = advice_for(store_->name(), reason);
    if (!advice.empty()) reason += ". " + std::string(advice);
    throw Error(ErrorCode::unavailable, "the store does not work: " + reason);
  }

  void measure(std::uint64_t size) {
    if (size > store_->capabilities().max_value_bytes)
      throw Error(ErrorCode::invalid_argument,
                  "values of " + exact_bytes(size) + " are more than this store takes");
    StoreLoad load(*store_, shape_of(arguments_, size));
    for (const LoadOp op : every_op) {
      if (stop_.came()) return;
      std::size_t steps = 0;
      const std::string label = std::string(to_string(op)) + " " + exact_bytes(size);
      const auto step_to = [&](double done) {
        while (steps < static_cast<std::size_t>(done * steps_a_run)) {
          progress_.step(label);
          ++steps;
        }
        return !stop_.came();
      };
      const LoadFigures figures = load.run(op, step_to);
      step_to(1);
      report(op, size, figures);
    }
  }

  void report(LoadOp op, std::uint64_t size, const LoadFigures& figures) {
    failed_ = failed_ || figures.failed > 0;
    const double operations = static_cast<double>(figures.operations) / figures.seconds;
    const double megabytes = op == LoadOp::exist ? 0 : megabytes_a_second(figures, size);
    if (arguments_.json) {
      nlohmann::json line{{"store", store_->name()},
                          {"op", to_string(op)},
                          {"value_bytes", size},
                          {"batch", arguments_.batch},
                          {"threads", arguments_.threads},
                          {"operations", figures.operations},
                          {"failed", figures.failed},
                          {"seconds", figures.seconds},
                          {"cpu_seconds", figures.cpu_seconds},
                          {"operations_per_second", operations},
                          {"megabytes_per_second", megabytes},
                          {"p50_us", figures.p50_us},
                          {"p99_us", figures.p99_us}};
      if (op == LoadOp::exist) line["megabytes_per_second"] = nullptr;
      if (figures.failed > 0) line["fault"] = figures.fault;
      runs_.push_back(std::move(line));
      return;
    }
    table_.add({std::string(to_string(op)), exact_bytes(size),
                op == LoadOp::exist ? "-" : number(megabytes), number(operations, "%.0f"),
                time_text(figures.p50_us), time_text(figures.p99_us),
                figures.failed == 0 ? "0" : std::to_string(figures.failed) + ": " + figures.fault});
  }

  const BenchStoreArguments& arguments_;
  const std::vector<std::uint64_t> sizes_;
  StopSignals stop_;  // before the store, whose threads inherit what is blocked
  const std::unique_ptr<EmbeddingStore> store_;
  Progress progress_;
  nlohmann::json runs_ = nlohmann::json::array();
  Table table_{{"OP", "VALUE", "MB/s", "OPS/s", "P50", "P99", "FAILED"}};
  bool failed_ = false;
};

}  // namespace

void add_bench_store(CLI::App& bench, int& exit_code) {
  auto arguments = std::make_shared<BenchStoreArguments>();
  CLI::App* command =
      bench.add_subcommand("store", "put, look for and get values of a store; they are removed");
  auto word = std::make_shared<std::string>();
  command->add_option("STORE", *word, "the store (default: --store)")->type_name("URL");
  const CLI::Option* named = add_store_option(*command, arguments->store);
  command->add_option("--size", arguments->sizes, "sizes of the values")
      ->type_name("BYTES")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--batch", arguments->batch, "values a call")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--threads", arguments->threads, "calls at a time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option("--count", arguments->count,
                   "values put of each size (default: 256 MiB of them, 4096 at most)")
      ->check(not_negative);
  add_duration(*command, "--time", arguments->time,
               "how long to look and to get, each; 0: every value once");
  add_duration(*command, "--timeout", arguments->timeout, "of a call");
  command->add_flag("--json", arguments->json, "one JSON object");
  command->add_flag("--quiet", arguments->quiet, "no progress bar");
  command->callback([arguments, word, named, &exit_code] {
    arguments->store = word_or_option(*word, *named, arguments->store);
    exit_code = BenchStore(*arguments).run();
  });
}

}  // namespace vitrove::cli
