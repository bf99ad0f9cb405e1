#include "server/worker_pool.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <pthread.h>

#include "base/log.h"

namespace vitrove {

WorkerPool::WorkerPool(std::string name, std::size_t threads, std::size_t max_queue)
    : name_(std::move(name)), max_queue_(max_queue) {
  threads_.reserve(std::max<std::size_t>(threads, 1));
  // Counted before they run, so that the first jobs find them free.
  idle_ = threads_.capacity();
  for (std::size_t i = 0; i < threads_.capacity(); ++i) {
    threads_.emplace_back([this] { run(); });
  }
}

WorkerPool::~WorkerPool() { stop(); }

bool WorkerPool::submit(Job job) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || queue_.size() >= max_queue_ + idle_) return false;
    queue_.push_back(std::move(job));
  }
  wake_.notify_one();
  return true;
}

bool WorkerPool::submit_if_idle(Job job) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || free_threads() == 0) return false;
    queue_.push_back(std::move(job));
  }
  wake_.notify_one();
  return true;
}

bool WorkerPool::full() const {
  std::lock_guard lock(mutex_);
  return stopping_ || queue_.size() >= max_queue_ + idle_;
}

std::size_t WorkerPool::waiting() const {
  std::lock_guard lock(mutex_);
  return queue_.size() > idle_ ? queue_.size() - idle_ : 0;
}

std::size_t WorkerPool::running() const {
  std::lock_guard lock(mutex_);
  return threads_.size() - idle_;
}

void WorkerPool::stop() {
  std::deque<Job> dropped;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(queue_);
  }
  wake_.notify_all();
  dropped.clear();
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkerPool::run() {
  pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    Job job = std::move(queue_.front());
    queue_.pop_front();
    --idle_;
    lock.unlock();
    try {
      job();
    } catch (const std::exception& error) {
      logger()->error("{}: a job threw: {}", name_, error.what());
    } catch (...) {
      logger()->error("{}: a job threw something unknown", name_);
    }
    job = nullptr;  // what it captured goes before the thread counts as free
    lock.lock();
    ++idle_;
  }
}

}  // namespace vitrove
