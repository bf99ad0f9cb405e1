#include "server/task_group.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "server/error_reply.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

struct Failure {
  std::size_t index;
  Error error;
};

class Group {
 public:
  Group(std::size_t count, TaskGroup::Job job, std::stop_source stop)
      : count_(count), job_(std::move(job)), stop_(std::move(stop)) {}

  void work() {
    for (std::size_t i = next_++; i < count_; i = next_++) {
      // After a failure too: the job sees the stop, and gives up what it holds.
      finish_one(i, attempt(i));
    }
  }

  // Until all are done or one has failed.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_ == count_ || failure_.has_value(); });
    if (!failure_) return;
    // Made anew: copies of an exception share their text, and this one goes to another thread.
    const Error& error = failure_->error;
    throw Error(error.code(), error.what(), error.detail(), error.item());
  }

 private:
  std::optional<Error> attempt(std::size_t index) {
    try {
      job_(index);
      return std::nullopt;
    } catch (...) {
      return current_error();
    }
  }

  void finish_one(std::size_t index, const std::optional<Error>& error) {
    {
      std::lock_guard lock(mutex_);
      ++done_;
      if (error && is_better(index, *error)) failure_.emplace(Failure{index, *error});
    }
    if (error) stop_.request_stop();
    changed_.notify_all();
  }

  bool is_better(std::size_t index, const Error& error) const {
    if (!failure_) return true;
    const bool was_cancelled = failure_->error.code() == ErrorCode::cancelled;
    const bool is_cancelled = error.code() == ErrorCode::cancelled;
    if (was_cancelled != is_cancelled) return was_cancelled;
    return index < failure_->index;
  }

  const std::size_t count_;
  const TaskGroup::Job job_;
  std::stop_source stop_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t done_ = 0;
  std::optional<Failure> failure_;
};

}  // namespace

void TaskGroup::run(WorkerPool& pool, std::size_t helpers, std::size_t count, Job job,
                    const std::stop_source& stop) {
  if (count == 0) return;
  auto group = std::make_shared<Group>(count, std::move(job), stop);
  for (std::size_t i = 0; i < helpers && i + 1 < count; ++i) {
    if (!pool.submit_if_idle([group] { group->work(); })) break;
  }
  group->work();
  group->wait();
}

}  // namespace vitrove
