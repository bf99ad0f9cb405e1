#include "server/model_retirement.h"

#include <utility>

#include <pthread.h>

namespace vitrove {

ModelRetirement::ModelRetirement() : thread_([this] { run(); }) {}

ModelRetirement::~ModelRetirement() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

std::shared_ptr<ModelSlot> ModelRetirement::keep(std::unique_ptr<ModelSlot> model) {
  {
    const std::lock_guard lock(mutex_);
    retired_.reserve(living_ + 1);
    ++living_;
  }
  return {model.release(), [this](ModelSlot* slot) { take(slot); }};
}

std::size_t ModelRetirement::living() const {
  const std::lock_guard lock(mutex_);
  return living_;
}

void ModelRetirement::take(ModelSlot* model) noexcept {
  {
    const std::lock_guard lock(mutex_);
    retired_.emplace_back(model);
  }
  changed_.notify_one();
}

void ModelRetirement::run() {
  pthread_setname_np(pthread_self(), "vt-retire");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !retired_.empty(); });
    if (retired_.empty()) return;
    auto model = std::move(retired_.back());
    retired_.pop_back();
    lock.unlock();
    model.reset();
    lock.lock();
    --living_;
  }
}

}  // namespace vitrove
