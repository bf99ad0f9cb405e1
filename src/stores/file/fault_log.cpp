#include "stores/file/fault_log.h"

#include <system_error>

namespace vitrove::file {

void FaultLog::failed(std::string_view what, int error_number) {
  const std::string reason =
      std::string(what) + ": " + std::generic_category().message(error_number);
  {
    std::lock_guard lock(mutex_);
    detail_ = reason;
    degraded_ = true;
  }
  throttle_.log(spdlog::level::warn, "file store {}: {}", root_, reason);
}

void FaultLog::noted(std::string_view what, int error_number) {
  notes_.log(spdlog::level::warn, "file store {}: {}: {}", root_, what,
             std::generic_category().message(error_number));
}

void FaultLog::succeeded() {
  if (!degraded_.load()) return;
  {
    std::lock_guard lock(mutex_);
    if (!degraded_.exchange(false)) return;
    detail_.clear();
  }
  logger()->info("file store {}: works again", root_);
}

std::string FaultLog::detail() const {
  std::lock_guard lock(mutex_);
  return detail_;
}

}  // namespace vitrove::file
