// WorkerPool: a fixed number of threads and a bounded queue. Work that does not fit is refused at
// once instead of piling up (field case B71).
//
// Threads are started with the pool and end with it; jobs still queued then are destroyed unrun, so
// a job's destructor must tell whoever waits for it. A job must not throw; what it throws anyway is
// logged and swallowed.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace vitrove {

class WorkerPool {
 public:
  using Job = std::function<void()>;

  // `max_queue`: jobs that may wait beyond those that a free thread will take at once.
  WorkerPool(std::string name, std::size_t threads, std::size_t max_queue);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // False when the queue is full or the pool is stopping.
  bool submit(Job job);
  // Whether submit() would answer false just now.
  bool full() const;
  // Only a free thread will do: false when the job would have to wait.
  bool submit_if_idle(Job job);

  std::size_t waiting() const;
  std::size_t running() const;
  std::size_t threads() const { return threads_.size(); }

  // Refuses new jobs, drops the queued ones, joins. Idempotent.
  void stop();

 private:
  void run();
  std::size_t free_threads() const { return idle_ > queue_.size() ? idle_ - queue_.size() : 0; }

  const std::string name_;
  const std::size_t max_queue_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> queue_;
  std::size_t idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace vitrove
