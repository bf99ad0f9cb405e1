// TaskGroup: the items of one request, worked on by the request's own thread and by whatever helper
// threads are free. The caller always works itself, so a request makes progress however busy the
// helpers are.
//
// The first failure stops the others and is thrown as soon as it is known. Every job is run, those
// after the failure too: a job looks at the stop before it begins. Jobs may outlive run(), so a job
// owns what it uses.
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>

#include "server/worker_pool.h"

namespace vitrove {

class TaskGroup {
 public:
  using Job = std::function<void(std::size_t index)>;

  // Runs job(0) ... job(count - 1); at most `helpers` threads of the pool join in. Throws the
  // job's Error; of several the one with the lowest index that is not a mere consequence.
  static void run(WorkerPool& pool, std::size_t helpers, std::size_t count, Job job,
                  const std::stop_source& stop);
};

}  // namespace vitrove
