// ModelRetirement: takes models down on a thread of its own. Whoever lets go of a model last may be
// an I/O thread, or in the middle of a request, and ending an encoder's session takes long.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "server/model_slot.h"

namespace vitrove {

class ModelRetirement {
 public:
  ModelRetirement();
  // Every model has to be given up before; waits until all are down.
  ~ModelRetirement();
  ModelRetirement(const ModelRetirement&) = delete;
  ModelRetirement& operator=(const ModelRetirement&) = delete;

  // The model as it was, but for where it ends.
  std::shared_ptr<ModelSlot> keep(std::unique_ptr<ModelSlot> model);
  // Models that have not ended, the one in use among them.
  std::size_t living() const;

 private:
  void take(ModelSlot* model) noexcept;
  void run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t living_ = 0;  // what `retired_` always has room for: taking one must not fail
  std::vector<std::unique_ptr<ModelSlot>> retired_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace vitrove
