#include "vitrove/encode_batcher.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "vitrove/error.h"

namespace vitrove {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::microseconds since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
}

struct Job {
  std::shared_ptr<const PreprocessedItem> item;
  std::string batch_class;
  std::stop_token cancel;
  Clock::time_point arrived;
  std::promise<EncodeResult> promise;
  std::function<void()> on_ready;

  void answer(EncodeResult result) {
    promise.set_value(std::move(result));
    if (on_ready) on_ready();
  }
  void refuse(const std::exception_ptr& error) {
    promise.set_exception(error);
    if (on_ready) on_ready();
  }
};

using Jobs = std::vector<Job>;

std::uint64_t patches_of(const PreprocessedItem& item) {
  return item.grid ? std::uint64_t{item.grid->t} * item.grid->h * item.grid->w : 0;
}

// What a batch still has room for. Its first item fits, however large.
class BatchRoom {
 public:
  explicit BatchRoom(const BatcherOptions& options)
      : items_left_(options.max_batch_size), patches_left_(options.max_batch_patches) {}

  bool is_full() const { return items_left_ == 0 || patches_left_ == 0; }

  // False when there is no room for the item.
  bool take(const PreprocessedItem& item) {
    const std::uint64_t patches = patches_of(item);
    if (is_full() || (!is_empty_ && patches > patches_left_)) return false;
    is_empty_ = false;
    --items_left_;
    patches_left_ -= std::min(patches, patches_left_);
    return true;
  }

 private:
  bool is_empty_ = true;
  std::uint32_t items_left_;
  std::uint64_t patches_left_;
};

std::exception_ptr make_error(ErrorCode code, const char* message, std::string detail = {}) {
  return std::make_exception_ptr(Error(code, message, std::move(detail)));
}

// Made beforehand: when memory has run out, the answer that says so must not need any.
struct ReadyErrors {
  std::exception_ptr cancelled = make_error(ErrorCode::cancelled, "the request was cancelled");
  std::exception_ptr shut_down =
      make_error(ErrorCode::unavailable, "the encoder is being shut down");
  std::exception_ptr no_memory = make_error(ErrorCode::unavailable, "out of memory while encoding");
  std::exception_ptr failed = make_error(ErrorCode::internal, "the encoder failed");
};

// The exception being handled, as an Error.
std::exception_ptr current_error(const ReadyErrors& ready) noexcept {
  try {
    throw;
  } catch (const Error&) {
    return std::current_exception();
  } catch (const std::bad_alloc&) {
    return ready.no_memory;
  } catch (const std::exception& error) {
    try {
      return make_error(ErrorCode::internal, "the encoder failed", error.what());
    } catch (...) {
      return ready.failed;
    }
  } catch (...) {
    return ready.failed;
  }
}

}  // namespace

struct EncodeBatcher::Impl {
  Impl(std::shared_ptr<Encoder> the_encoder, BatcherOptions the_options)
      : encoder(std::move(the_encoder)), options(the_options) {
    batch.reserve(std::min(options.max_batch_size, options.max_queue));
  }

  void work() noexcept;
  bool next_batch();
  bool batch_is_complete() const;
  void take_batch();
  void drop_cancelled();
  void run();
  bool run_together();
  void run_alone(Job& job);
  std::vector<EncoderOutput> encode(std::span<const PreprocessedItem* const> items);
  void check(const PreprocessedItem& item, const EncoderOutput& output) const;
  void finish(Job& job, EncoderOutput output, std::chrono::microseconds cost);
  void fail(Job& job, const std::exception_ptr& error);

  const std::shared_ptr<Encoder> encoder;
  const BatcherOptions options;
  const ReadyErrors errors;
  // What the thread is at; its own. Room for any batch, so that taking one needs no memory.
  Jobs batch;

  mutable std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::deque<Job> queue;
  bool stopping = false;
  BatcherStats counters;  // without the gauges
  std::optional<Clock::time_point> running_since;

  std::thread thread;

  // Notes that the encoder runs, and for how long it did, however it ends.
  class Running {
   public:
    explicit Running(Impl& impl) : impl_(impl) {
      const std::lock_guard lock(impl_.mutex);
      impl_.running_since = start_;
    }
    ~Running() {
      const std::lock_guard lock(impl_.mutex);
      impl_.running_since.reset();
      ++impl_.counters.batches;
      impl_.counters.busy_us += static_cast<std::uint64_t>(since(start_).count());
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    Impl& impl_;
    const Clock::time_point start_ = Clock::now();
  };
};

// As many items of the first one's class as a batch takes; or nothing left to wait for.
bool EncodeBatcher::Impl::batch_is_complete() const {
  if (queue.empty()) return true;
  BatchRoom room(options);
  for (const Job& job : queue) {
    if (job.batch_class != queue.front().batch_class) continue;
    if (!room.take(*job.item) || room.is_full()) return true;
  }
  return false;
}

void EncodeBatcher::Impl::take_batch() {
  BatchRoom room(options);
  for (auto job = queue.begin(); job != queue.end() && !room.is_full();) {
    const bool is_alike = batch.empty() || job->batch_class == batch.front().batch_class;
    if (!is_alike || !room.take(*job->item)) {
      ++job;
      continue;
    }
    batch.push_back(std::move(*job));
    job = queue.erase(job);
  }
}

void EncodeBatcher::Impl::drop_cancelled() {
  std::erase_if(queue, [this](Job& job) {
    if (!job.cancel.stop_requested()) return false;
    job.refuse(errors.cancelled);
    return true;
  });
}

// Waits for work. False when it is time to stop.
bool EncodeBatcher::Impl::next_batch() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return stopping || !queue.empty(); });
    if (stopping) return false;
    const auto deadline = queue.front().arrived + options.max_wait;
    changed.wait_until(lock, deadline, [&] { return stopping || batch_is_complete(); });
    if (stopping) return false;
    drop_cancelled();
    if (queue.empty()) continue;
    take_batch();
    return true;
  }
}

std::vector<EncoderOutput> EncodeBatcher::Impl::encode(
    std::span<const PreprocessedItem* const> items) {
  const Running running(*this);
  auto outputs = encoder->encode(items);
  if (outputs.size() != items.size()) {
    throw Error(ErrorCode::internal, "the encoder answered another number of items");
  }
  return outputs;
}

// What an encoder gives is believed after this (field case B37); finiteness is checked where the
// rows are published, since they are read there anyway.
void EncodeBatcher::Impl::check(const PreprocessedItem& item, const EncoderOutput& output) const {
  if (output.rows == 0) throw Error(ErrorCode::internal, "the encoder gave no rows");
  const EncoderInfo& info = encoder->info();
  if (output.bytes.size() != std::uint64_t{output.rows} * info.dim * element_size(info.dtype)) {
    throw Error(ErrorCode::internal, "the encoder's rows are of another size than declared");
  }
  const auto expected = encoder->token_count(item);
  if (expected && *expected != output.rows) {
    throw Error(ErrorCode::internal, "the encoder gave " + std::to_string(output.rows) +
                                         " rows instead of " + std::to_string(*expected));
  }
}

// Counted before it is answered, so that whoever has an answer finds it in the counters.
void EncodeBatcher::Impl::fail(Job& job, const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex);
    ++counters.failures;
  }
  job.refuse(error);
}

void EncodeBatcher::Impl::finish(Job& job, EncoderOutput output, std::chrono::microseconds cost) {
  try {
    check(*job.item, output);
  } catch (...) {
    fail(job, current_error(errors));
    return;
  }
  {
    const std::lock_guard lock(mutex);
    ++counters.items;
  }
  job.answer({std::move(output), cost});
}

// False when the batch failed as a whole and nobody is answered yet.
bool EncodeBatcher::Impl::run_together() {
  std::vector<EncoderOutput> outputs;
  const auto start = Clock::now();
  try {
    std::vector<const PreprocessedItem*> items;
    for (const Job& job : batch) items.push_back(job.item.get());
    outputs = encode(items);
  } catch (...) {
    return false;
  }
  const auto took = static_cast<double>(since(start).count());
  double all_bytes = 0;
  for (const EncoderOutput& output : outputs) all_bytes += static_cast<double>(output.bytes.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    // A clip beside a small picture has taken nearly all of the time.
    const double share = static_cast<double>(outputs[i].bytes.size()) / std::max(all_bytes, 1.0);
    finish(batch[i], std::move(outputs[i]),
           std::chrono::microseconds(static_cast<std::int64_t>(took * share)));
  }
  return true;
}

void EncodeBatcher::Impl::run_alone(Job& job) {
  const PreprocessedItem* const items[] = {job.item.get()};
  std::vector<EncoderOutput> outputs;
  const auto start = Clock::now();
  try {
    outputs = encode(items);
  } catch (...) {
    fail(job, current_error(errors));
    return;
  }
  finish(job, std::move(outputs.front()), since(start));
}

void EncodeBatcher::Impl::run() {
  if (batch.size() > 1 && run_together()) return;
  for (Job& job : batch) {
    if (job.cancel.stop_requested()) {
      job.refuse(errors.cancelled);
    } else {
      run_alone(job);
    }
  }
}

// Whatever the encoder throws is caught around its calls; nothing else here needs memory.
void EncodeBatcher::Impl::work() noexcept {
  while (next_batch()) {
    run();
    batch.clear();
  }
}

EncodeBatcher::EncodeBatcher(std::shared_ptr<Encoder> encoder, BatcherOptions options) {
  if (!encoder) throw Error(ErrorCode::invalid_argument, "a batcher needs an encoder");
  if (options.max_batch_size == 0) {
    throw Error(ErrorCode::invalid_argument, "the largest batch has no items");
  }
  if (options.max_batch_patches == 0) {
    throw Error(ErrorCode::invalid_argument, "the largest batch has no patches");
  }
  if (options.max_queue == 0) {
    throw Error(ErrorCode::invalid_argument, "the encoder's queue has no room");
  }
  impl_ = std::make_unique<Impl>(std::move(encoder), options);
  impl_->thread = std::thread([impl = impl_.get()] { impl->work(); });
}

EncodeBatcher::~EncodeBatcher() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
    for (Job& job : impl_->queue) job.refuse(impl_->errors.shut_down);
    impl_->queue.clear();
  }
  impl_->changed.notify_all();
  impl_->thread.join();
}

std::future<EncodeResult> EncodeBatcher::submit(std::shared_ptr<const PreprocessedItem> item,
                                                std::stop_token cancel,
                                                std::function<void()> on_ready) {
  if (!item) throw Error(ErrorCode::invalid_argument, "nothing to encode");
  Job job;
  job.batch_class = impl_->encoder->batch_class(*item);
  job.item = std::move(item);
  job.cancel = std::move(cancel);
  job.arrived = Clock::now();
  job.on_ready = std::move(on_ready);
  auto future = job.promise.get_future();
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->stopping) std::rethrow_exception(impl_->errors.shut_down);
    if (impl_->queue.size() >= impl_->options.max_queue) impl_->drop_cancelled();
    if (impl_->queue.size() >= impl_->options.max_queue) {
      throw Error(ErrorCode::queue_full, "the encoder's queue is full");
    }
    impl_->queue.push_back(std::move(job));
  }
  impl_->changed.notify_one();
  return future;
}

const std::shared_ptr<Encoder>& EncodeBatcher::encoder() const { return impl_->encoder; }

BatcherStats EncodeBatcher::stats() const {
  const std::lock_guard lock(impl_->mutex);
  BatcherStats stats = impl_->counters;
  stats.queued = impl_->queue.size();
  if (impl_->running_since) {
    const auto ran = since(*impl_->running_since).count();
    stats.running_since_us = static_cast<std::uint64_t>(std::max<std::int64_t>(ran, 1));
  }
  return stats;
}

}  // namespace vitrove
