#include "cache/admin_call.h"

namespace vitrove {

void AdminCall::run(const std::stop_token& shutdown) noexcept {
  const std::stop_callback forward(shutdown, [this] { stop_.request_stop(); });
  StoreContext context;
  context.deadline = deadline();
  context.cancel = stop_.get_token();
  try {
    call_(context);
  } catch (...) {  // out of memory: the caller sees that nothing was answered
  }
  call_ = nullptr;
  group_->finished(0);
}

}  // namespace vitrove
