#include "cli/store_load.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include <time.h>

#include "cli/store_access.h"
#include "vitrove/error.h"

namespace vitrove::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds tick_interval{50};
constexpr std::size_t keys_in_removal = 64;
constexpr std::size_t most_call_times = 100'000;  // of a thread

PagePoolOptions pool_options(const LoadShape& shape) {
  PagePoolOptions options;
  const std::uint64_t pages = (shape.value_bytes + options.page_bytes - 1) / options.page_bytes;
  options.pool_bytes = shape.threads * shape.batch * pages * options.page_bytes;
  return options;
}

std::vector<EmbeddingKey> random_keys(std::size_t count) {
  std::random_device random;
  std::string run = "vitrove bench store";
  for (int i = 0; i < 4; ++i) run += " " + std::to_string(random());
  std::vector<EmbeddingKey> keys;
  keys.reserve(count);
  for (std::size_t i = 0; i < count; ++i) keys.push_back({sha256(run + " " + std::to_string(i))});
  return keys;
}

void stamp(MutableBuffer value, std::uint64_t number) {
  std::memcpy(value.data(), &number, sizeof number);
  std::memcpy(value.last(sizeof number).data(), &number, sizeof number);
}

bool is_stamped(ConstBuffer value, std::uint64_t number) {
  return std::memcmp(value.data(), &number, sizeof number) == 0 &&
         std::memcmp(value.last(sizeof number).data(), &number, sizeof number) == 0;
}

double cpu_seconds_so_far() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

constexpr std::uint64_t nobodys_number = ~std::uint64_t{0};

double percentile(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  return sorted[static_cast<std::size_t>(
      std::lround(static_cast<double>(sorted.size() - 1) * part))];
}

}  // namespace

std::string_view to_string(LoadOp op) {
  switch (op) {
    case LoadOp::put:
      return "put";
    case LoadOp::exist:
      return "exist";
    case LoadOp::get:
      break;
  }
  return "get";
}

// What the threads of one run share.
class StoreLoad::Run {
 public:
  Run(const StoreLoad& load, LoadOp op)
      : op_(op),
        end_(op == LoadOp::put || load.shape_.time.count() == 0 ? Clock::time_point::max()
                                                                : started_ + load.shape_.time),
        batches_(load.batches()),
        running_(load.shape_.threads) {}

  LoadOp op() const { return op_; }

  // The next batch, or nothing more to do.
  std::optional<std::size_t> next() {
    if (stopped_.load()) return std::nullopt;
    const std::size_t number = taken_.fetch_add(1);
    // A machine that is slow to start a thread shows a call at least.
    if (number > 0 && Clock::now() >= end_) return std::nullopt;
    if (!is_timed() && number >= batches_) return std::nullopt;
    return number % batches_;
  }

  double done() const {
    const double part =
        is_timed() ? std::chrono::duration<double>(Clock::now() - started_) / (end_ - started_)
                   : static_cast<double>(taken_.load()) / static_cast<double>(batches_);
    return std::min(part, 1.0);
  }

  void leave(const LoadFigures& figures, const std::vector<double>& call_times) {
    const std::lock_guard lock(mutex_);
    total_.operations += figures.operations;
    total_.failed += figures.failed;
    if (total_.fault.empty()) total_.fault = figures.fault;
    call_times_.insert(call_times_.end(), call_times.begin(), call_times.end());
    if (--running_ > 0) return;
    total_.seconds = std::chrono::duration<double>(Clock::now() - started_).count();
    total_.cpu_seconds = cpu_seconds_so_far() - cpu_before_;
    changed_.notify_all();
  }

  LoadFigures wait(const Tick& tick) {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, tick_interval, [this] { return running_ == 0; })) {
      lock.unlock();
      if (!tick(done())) stopped_.store(true);
      lock.lock();
    }
    std::ranges::sort(call_times_);
    total_.p50_us = percentile(call_times_, 0.5);
    total_.p99_us = percentile(call_times_, 0.99);
    return total_;
  }

 private:
  bool is_timed() const { return end_ != Clock::time_point::max(); }

  const LoadOp op_;
  const Clock::time_point started_ = Clock::now();
  const double cpu_before_ = cpu_seconds_so_far();
  const Clock::time_point end_;
  const std::size_t batches_;
  std::atomic<std::size_t> taken_{0};
  std::atomic<bool> stopped_{false};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t running_;
  LoadFigures total_;
  std::vector<double> call_times_;
};

// One thread's part of a run.
class StoreLoad::Worker {
 public:
  Worker(StoreLoad& load, Run& run, std::size_t number)
      : load_(load),
        run_(run),
        slots_(std::span(load.slots_).subspan(number * load.shape_.batch, load.shape_.batch)) {}

  void work() noexcept {
    try {
      while (const auto batch = run_.next()) call(*batch * load_.shape_.batch);
    } catch (const std::exception& error) {
      fail(error.what());
    }
    run_.leave(figures_, call_times_);
  }

 private:
  void call(std::size_t first) {
    const auto keys = std::span(load_.keys_).subspan(first, slots_.size());
    for (std::size_t i = 0; i < slots_.size(); ++i)
      stamp(slots_[i], run_.op() == LoadOp::put ? first + i : nobodys_number);
    StoreContext context;
    const auto started = Clock::now();
    context.deadline = started + load_.shape_.call_timeout;
    const std::vector<StoreResult> results = ask(keys, context);
    note(std::chrono::duration<double, std::micro>(Clock::now() - started).count());
    for (std::size_t i = 0; i < keys.size(); ++i) judge(results, i, first + i);
  }

  std::vector<StoreResult> ask(std::span<const EmbeddingKey> keys, const StoreContext& context) {
    switch (run_.op()) {
      case LoadOp::put: {
        const std::vector<ConstBuffer> values(slots_.begin(), slots_.end());
        return load_.store_.batch_put(keys, values, PutMode::if_absent, context);
      }
      case LoadOp::exist:
        return load_.store_.batch_is_exist(keys, context);
      case LoadOp::get:
        break;
    }
    return load_.store_.batch_get(keys, slots_, context);
  }

  void judge(const std::vector<StoreResult>& results, std::size_t index, std::size_t number) {
    if (results.size() != slots_.size()) return fail("an answer for another number of keys");
    if (!results[index].ok()) return fail(words_for(results[index]));
    if (run_.op() == LoadOp::get && !is_stamped(slots_[index], number))
      return fail("other bytes than those put");
    ++figures_.operations;
  }

  // A sample of all calls when they are too many to be kept, each as likely as the other.
  void note(double call_time) {
    if (call_times_.size() < most_call_times) {
      call_times_.push_back(call_time);
    } else if (const auto place = std::uniform_int_distribution<std::size_t>(0, calls_)(random_);
               place < most_call_times) {
      call_times_[place] = call_time;
    }
    ++calls_;
  }

  void fail(const std::string& why) {
    ++figures_.failed;
    if (figures_.fault.empty()) figures_.fault = why;
  }

  StoreLoad& load_;
  Run& run_;
  const std::span<const MutableBuffer> slots_;
  LoadFigures figures_;
  std::size_t calls_ = 0;
  std::vector<double> call_times_;
  std::minstd_rand random_{std::random_device{}()};
};

StoreLoad::StoreLoad(EmbeddingStore& store, const LoadShape& shape)
    : store_(store), shape_(shape), pool_(pool_options(shape)), keys_(random_keys(shape.count)) {
  for (std::size_t i = 0; i < shape.threads * shape.batch; ++i) {
    const auto runs = pool_.allocate(1, shape.value_bytes);  // one row: never cut
    if (!runs) throw Error(ErrorCode::internal, "the pool does not hold what it was made for");
    slots_.push_back(pool_.segment_bytes(runs->segments[0]));
    std::ranges::fill(slots_.back(), std::byte{0x5A});  // committed before it is measured
  }
  store_.register_shared_buffer(pool_.arena(), pool_.memfd());
}

StoreLoad::~StoreLoad() {
  remove_all();
  store_.unregister_buffer(pool_.arena());
}

LoadFigures StoreLoad::run(LoadOp op, const Tick& tick) {
  Run run(*this, op);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < shape_.threads; ++i)
    threads.emplace_back([this, &run, i] { Worker(*this, run, i).work(); });
  return run.wait(tick);
}

void StoreLoad::remove_all() noexcept {
  try {
    if (!store_.capabilities().can_remove) return;
    for (std::size_t first = 0; first < keys_.size(); first += keys_in_removal) {
      const auto some =
          std::span(keys_).subspan(first, std::min(keys_in_removal, keys_.size() - first));
      StoreContext context;
      context.deadline = Clock::now() + shape_.call_timeout;
      const auto results = store_.batch_remove(some, context);
      // A store that has gone away would cost one time limit after the other.
      if (std::ranges::all_of(results, &StoreResult::is_fault)) return;
    }
  } catch (const std::exception&) {
    return;  // nothing more can be done for what is left there
  }
}

}  // namespace vitrove::cli
